"""Translates text, a sentence per line."""

import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from t2t_repro import cli
from t2t_repro.text_files import iterate_lines


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

    standard = args.input_file == "-"
    lines = _stripped(sys.stdin) if standard else iterate_lines(args.input_file)
    translator, _ = load_translator(
        ModelDir(Path(args.model_dir)), args.checkpoint, args.beam_size, args.alpha
    )
    # Somebody who types waits for each line; a file is sorted by length in windows.
    window = 1 if standard and sys.stdin.isatty() else 4096
    hidden = args.output_file == "-" or not sys.stderr.isatty()
    cut = 0
    with (
        _output(args.output_file) as output,
        tqdm(unit=" sentences", disable=hidden) as bar,
    ):
        for found in translator.translate_lines(
            lines, args.batch_size, window, bar.update
        ):
            cut += found.cut
            score = f"{found.score:.6f}\t" if args.scores else ""
            print(f"{score}{found.text}", file=output, flush=window == 1)
    if cut:
        print(
            f"{cut:,} lines were longer than {translator.max_input_length} subwords "
            "and were cut",
            file=sys.stderr,
        )


def _stripped(stream: Iterable[str]) -> Iterator[str]:
    """Yields the lines of a stream without their line ends."""
    for line in stream:
        yield line.rstrip("\n").removesuffix("\r")


@contextlib.contextmanager
def _output(name: str) -> Iterator[TextIO]:
    """Opens the output; a file gets its name only when it is whole."""
    if name == "-":
        yield sys.stdout
        return
    path = Path(name)
    aside = path.with_name(f".{path.name}.partial")
    try:
        with aside.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


if __name__ == "__main__":
    cli.run(main)
