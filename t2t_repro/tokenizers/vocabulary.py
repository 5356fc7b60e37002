"""Vocabularies built from text by the paper's two schemes, both lossless."""

from __future__ import annotations

import hashlib
import io
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_repro.system.atomic_file import write_bytes_atomically
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.line_samples import sample_by_number
from t2t_repro.tokenizers.sentencepiece_tokenizer import model_proto
from t2t_repro.tokenizers.tokenizer import (
    EOS_ID,
    PAD_ID,
    SENTENCEPIECE_SUFFIX,
    WORD_PIECE_SUFFIX,
)

SUFFIXES = {"sentencepiece": SENTENCEPIECE_SUFFIX, "wordpiece": WORD_PIECE_SUFFIX}

# SentencePiece trains on a random sample of at most this many lines (about 250 MB).
MAX_LINES = 2_000_000
# Longer lines are skipped when building a vocabulary, because the time to choose word
# pieces is quadratic in the length of a word. Encoding accepts lines of any length.
_MAX_LINE_BYTES = 16_384
_UNK_ID = 2

# SentencePiece represents a space as U+2581 and would decode a U+2581 of the text as
# a space. Therefore the model's normalization rules escape two characters: U+2581
# becomes U+E000 U+E002, and U+E000 (private use) becomes U+E000 U+E001.
_ESCAPE_RULES = "2581\tE000 E002\nE000\tE000 E001\n"
_UNESCAPE_RULES = "E000 E002\t2581\nE000 E001\tE000\n"


@dataclass(frozen=True)
class PieceOptions:
    """Options of SentencePiece's training; the fields are those of `HParams`.

    Attributes:
        normalization: Name of SentencePiece's rule, or "exact" for the lossless rule.
        character_coverage: Fraction of the characters in the text that get a piece. The
            rarest others are spelled as bytes: web text has thousands of them, which
            would fill the vocabulary.
        split_digits: Whether each digit is a piece of its own.
        whole_symbols: Symbols, separated by spaces, that are never split; None: none.
    """

    normalization: str = "exact"
    character_coverage: float = 0.9999
    split_digits: bool = False
    whole_symbols: str | None = None

    @property
    def label(self) -> str:
        """Short name of the options in the names of folders; "" for the default."""
        if self == PieceOptions():
            return ""
        return "-" + hashlib.sha256(repr(self).encode()).hexdigest()[:8]


class VocabularyTooLargeError(UserError):
    """The text yields fewer than `vocab_size` subwords, at most `largest`."""

    def __init__(self, vocab_size: int, largest: int) -> None:
        """Composes the message from both sizes."""
        super().__init__(
            f"vocab_size {vocab_size} is too large for this text: "
            f"the largest possible is {largest}"
        )
        self.largest = largest


def build_vocabulary(
    kind: str,
    lines: Iterable[str],
    vocab_size: int,
    path: str | os.PathLike[str],
    whole_tags: bool = False,
    options: PieceOptions | None = None,
) -> None:
    """Builds a vocabulary from text and writes its file atomically.

    The same lines in the same order produce an identical file. A large corpus is
    sampled uniformly (`MAX_LINES` lines for `sentencepiece`,
    `word_piece_vocabulary.MAX_BYTES` bytes for `wordpiece`).

    Args:
        kind: `sentencepiece` (byte-pair encoding, the paper's English-German) or
            `wordpiece` (tensor2tensor's subwords, the paper's English-French).
        lines: Sentences of both languages.
        vocab_size: Number of ids; approximate (about 1%) for `wordpiece`.
        path: Output file, `*.model` for `sentencepiece` or `*.subwords` for
            `wordpiece`.
        whole_tags: Whether a subword may mix letters with other characters, as in the
            tags `/NP` and `PRP$`; only for `sentencepiece`.
        options: Options of `sentencepiece`; None for the default.

    Raises:
        UserError: The kind is unknown, the file has the wrong suffix, there is no
            text, or `vocab_size` is too small for the text.
        VocabularyTooLargeError: `vocab_size` is too large for the text.
    """
    path = os.fspath(path)
    if kind not in SUFFIXES:
        raise UserError(
            f"unknown kind of vocabulary {kind!r}; choose one of {', '.join(SUFFIXES)}"
        )
    if not path.endswith(SUFFIXES[kind]):
        raise UserError(
            f"{path}: the suffix of a {kind} vocabulary must be {SUFFIXES[kind]}"
        )
    if kind == "sentencepiece":
        contents = _sentencepiece_model(
            lines, vocab_size, whole_tags, options or PieceOptions()
        )
    else:
        from t2t_repro.tokenizers.word_piece_vocabulary import build_word_pieces
        from t2t_repro.tokenizers.word_pieces import format_file

        contents = format_file(build_word_pieces(_text_lines(lines), vocab_size))
    write_bytes_atomically(path, contents)


def _sentencepiece_model(
    lines: Iterable[str], vocab_size: int, whole_tags: bool, options: PieceOptions
) -> bytes:
    """Trains byte-pair encoding and returns the bytes of the model file."""
    import sentencepiece

    model = io.BytesIO()
    failures: list[BaseException] = []
    # The random numbers of SentencePiece's own sample differ between processes.
    sample = sample_by_number(_text_lines(lines), MAX_LINES)
    text = _record_exceptions(sample, failures)
    with tempfile.TemporaryDirectory() as directory:
        escape, unescape = Path(directory, "escape"), Path(directory, "unescape")
        escape.write_text(_ESCAPE_RULES, encoding="ascii")
        unescape.write_text(_UNESCAPE_RULES, encoding="ascii")
        # The model file contains the options that are given, so defaults are not.
        given: dict[str, Any] = {"normalization_rule_name": options.normalization}
        if options.normalization == "exact":
            given = {
                "normalization_rule_tsv": str(escape),
                "denormalization_rule_tsv": str(unescape),
            }
        if options.split_digits:
            given["split_digits"] = True
        if options.whole_symbols is not None:
            given["user_defined_symbols"] = options.whole_symbols.split()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=text,
                model_writer=model,
                model_type="bpe",
                vocab_size=vocab_size,
                pad_id=PAD_ID,
                eos_id=EOS_ID,
                unk_id=_UNK_ID,
                bos_id=-1,
                byte_fallback=True,
                character_coverage=options.character_coverage,
                remove_extra_whitespaces=False,
                split_by_unicode_script=not whole_tags,
                input_sentence_size=MAX_LINES,  # The sample has no more lines.
                shuffle_input_sentence=True,
                max_sentence_length=_MAX_LINE_BYTES,
                num_threads=1,
                minloglevel=2,
                **given,
            )
        except RuntimeError as error:
            if failures:
                raise failures[0] from None
            raise _user_error(str(error), vocab_size) from error
    return _remove_paths(model.getvalue())


def _remove_paths(model: bytes) -> bytes:
    """Removes the paths of the temporary rule files; the compiled rules remain."""
    proto = model_proto(model)
    proto.normalizer_spec.ClearField("normalization_rule_tsv")
    proto.denormalizer_spec.ClearField("normalization_rule_tsv")
    return proto.SerializeToString(deterministic=True)


def _user_error(message: str, vocab_size: int) -> UserError:
    """Converts SentencePiece's error message to a UserError about `vocab_size`."""
    if match := re.search(r"Vocabulary size too high .* value <= (\d+)", message):
        return VocabularyTooLargeError(vocab_size, int(match[1]))
    if match := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return UserError(
            f"vocab_size {vocab_size} is too small for this text: the vocabulary must "
            f"contain 256 bytes and every common character, {match[1]} entries in all"
        )
    return UserError(
        f"SentencePiece failed to build a vocabulary of {vocab_size} ids: {message}"
    )


def _record_exceptions(
    lines: Iterable[bytes], failures: list[BaseException]
) -> Iterator[bytes]:
    """Records exceptions of `lines`, because SentencePiece raises its own instead."""
    try:
        yield from lines
    except (Exception, KeyboardInterrupt) as error:
        failures.append(error)
        raise


def _text_lines(lines: Iterable[str]) -> Iterator[str]:
    """Skips blank lines and lines of more than `_MAX_LINE_BYTES` bytes in UTF-8."""
    empty = True
    for line in lines:
        if line.strip() and len(line.encode()) <= _MAX_LINE_BYTES:
            empty = False
            yield line
    if empty:
        raise UserError(
            "there is no text to build a vocabulary from: every line is empty or has "
            f"more than {_MAX_LINE_BYTES:,} bytes"
        )
