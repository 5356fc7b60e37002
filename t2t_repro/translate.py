"""Translates text, a sentence per line."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TextIO

from t2t_repro import cli
from t2t_repro.text_files import decode_lines, iterate_lines, new_text_file


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Translates lines: one line out for every line in, in their order.",
        json_flag=False,
    )
    parser.add_argument("--model_dir", required=True, help="folder of the model")
    cli.add_decoding_flags(parser)
    parser.add_argument(
        "--input_file", default="-", help="text to translate; - is standard input"
    )
    parser.add_argument(
        "--output_file", default="-", help="where it goes; - is standard output"
    )
    parser.add_argument(
        "--scores",
        action="store_true",
        help="write the score and a tab before each translation",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and translates from the input to the output."""
    args = _parser().parse_args(argv)
    cli.start_tensorflow(args.verbose)
    from tqdm import tqdm

    from t2t_repro.loading import load_translator
    from t2t_repro.model_dir import ModelDir
    from t2t_repro.translator import give_each_batch_a_core

    give_each_batch_a_core()
    typed = args.input_file == "-" and sys.stdin.isatty()
    hidden = args.output_file == "-" or not sys.stderr.isatty()
    translator, _ = load_translator(
        ModelDir(Path(args.model_dir)), args.checkpoint, args.beam_size, args.alpha
    )
    cut = 0
    with (
        _output(args.output_file) as output,
        tqdm(unit=" sentences", disable=hidden) as bar,
    ):
        # Somebody who types waits for each line; else windows are sorted by length.
        for found in translator.translate_lines(
            _lines(args.input_file),
            args.batch_size,
            window=1 if typed else 4096,
            progress=bar.update,
        ):
            cut += found.cut
            score = f"{found.score:.6f}\t" if args.scores else ""
            print(f"{score}{found.text}", file=output, flush=typed)
    if cut:
        longest = translator.max_input_length
        print(
            f"cut, because longer than {longest} subwords: {cut:,} of the lines",
            file=sys.stderr,
        )


def _lines(name: str) -> Iterator[str]:
    """Reads the lines of a file, or of standard input for "-", which may be empty."""
    if name == "-":
        return decode_lines(sys.stdin.buffer, "standard input")
    return iterate_lines(name)


def _output(name: str) -> AbstractContextManager[TextIO]:
    """Opens a file, which gets its name when it is whole, or "-", standard output."""
    return nullcontext(sys.stdout) if name == "-" else new_text_file(name)


if __name__ == "__main__":
    cli.run(main)
