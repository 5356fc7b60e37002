"""Documents in `translate`: their texts are translated, and all other bytes stay.

The translated texts are first appended to `OUTPUT.texts.partial`, from which an
interrupted run resumes. At the end, the document is written and that file removed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro.command_line import cli
from t2t_repro.command_line.translate_text import (
    Prepared,
    check_names,
    translate_text,
)
from t2t_repro.formats.documents import (
    FORMATS,
    Document,
    Request,
    find_format,
    read_document,
)
from t2t_repro.system.atomic_file import is_special, write_bytes_atomically
from t2t_repro.system.errors import UserError

if TYPE_CHECKING:
    from t2t_repro.runs.run_metadata import RunMetadata

# Flags without a meaning for documents.
_REFUSED = ("scores", "nbest", "alignment", "prefix_file", "num_shards")


def add_flags(parser: cli.ArgumentParser) -> None:
    """Adds the flags of documents."""
    add = parser.add_argument
    add(
        "--format",
        choices=("auto", "text", *FORMATS),
        default="auto",
        help="format of --input_file; auto: by the ending of its name, text for other "
        "names and standard input",
    )
    add(
        "--retranslate",
        action="store_true",
        help="also translate the units of a document that have a translation",
    )
    for side in ("source", "target"):
        add(
            f"--{side}_lang",
            metavar="CODE",
            help=f"code of the {side} language in a document (default: the model's)",
        )


def select_format(args: Any) -> str | None:
    """Returns the format of the document; None for lines of text.

    Raises:
        UserError: Other flags do not suit the format.
    """
    name = args.format
    if name == "auto":
        name = find_format(args.input_file) or "text"
    if name == "text":
        for flag in ("retranslate", "source_lang", "target_lang"):
            if getattr(args, flag):
                raise UserError(f"--{flag} needs a document, such as a PO file")
        return None
    for flag in _REFUSED:
        if getattr(args, flag):
            raise UserError(
                f"--{flag} and --format {name} cannot be combined; give one of them, "
                "or --format text"
            )
    if args.input_file == "-":
        raise UserError(f"--format {name} needs --input_file")
    if args.output_file == "-" or is_special(args.output_file):
        raise UserError(f"--format {name} needs a file as --output_file")
    return str(name)


def translate_document(
    args: Any,
    name: str,
    languages: RunMetadata,
    load: Callable[[Any, int | None], Prepared],
) -> None:
    """Translates a document, and resumes where an interrupted run stopped.

    Args:
        args: Flags of the command.
        name: Format of the document.
        languages: Metadata of the model with its languages.
        load: As for `translate_text`.

    Raises:
        UserError: The flags, the document or the model cannot be used.
    """
    from t2t_repro.translation.translation_files import InputList

    check_names(args)
    document = _read(args, name, languages)
    if not document.texts:
        cli.log(f"{args.input_file} has no text to translate")
        write_bytes_atomically(args.output_file, document.write([]))
        return

    def finish(partial: Path) -> None:
        translations = partial.read_text(encoding="utf-8").split("\n")[:-1]
        write_bytes_atomically(args.output_file, document.write(translations))

    texts = f"{args.output_file}.texts"
    settings = {
        "output_file": texts,
        "placeholders": [document.codes.pattern, "all", *(args.placeholders or ())],
        # A text of a document may have several sentences, of which models omit some.
        "split_sentences": not args.tensor2tensor_rules,
    }
    text_args = argparse.Namespace(**vars(args) | settings)
    translate_text(text_args, load, InputList(args.input_file, document.texts), finish)
    Path(texts).unlink()


def _read(args: Any, name: str, languages: RunMetadata) -> Document:
    path = Path(args.input_file)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    request = Request(
        path,
        args.source_lang or languages.source_lang,
        args.target_lang or languages.target_lang,
        args.retranslate,
    )
    return read_document(name, data, request)
