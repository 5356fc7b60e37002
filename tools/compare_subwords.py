"""Compares our word pieces with the real tensor2tensor's, on every line of any text.

    python tools/compare_subwords.py --t2t_python t2t-venv/bin/python
        --vocab_file vocab.translate_ende_wmt32k.32768.subwords train.en train.de

Every line is encoded and decoded by t2t_repro's tokenizer in the graph, and by
tensor2tensor's SubwordTextEncoder in a process of its own. Exit status 1 if ids or
texts differ. tensor2tensor's environment is Python 3.7 with tensorflow 1.15.5 and
tensor2tensor 1.15.7.
"""

import itertools
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.in_turn import Process, peer, peer_versions
from benchmarks.machine import say

from t2t_repro.command_line import cli
from t2t_repro.system.atomic_file import iterate_lines

OURS, THEIRS = "t2t_repro", "tensor2tensor"
EXIT_DIFFERENT = 1
CHUNK = 2000  # Lines that both programs hold in memory at once.

Coder = Callable[[list[str]], list[list[Any]]]
"""Returns of each text its ids, without EOS, and the text that they decode to."""


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, compares file by file and prints what differs."""
    args = _parse(argv)
    for path in args.files:
        next(iterate_lines(path))  # A bad name shows before the work, not after it.
    peer_versions(args.t2t_python, "--t2t_python", THEIRS)
    cli.start_tensorflow(args.verbose)
    ours = our_coder(args.vocab_file)
    encoder = peer(
        THEIRS, args.t2t_python, "tensor2tensor_subwords.py", args.vocab_file
    )
    with tempfile.TemporaryDirectory() as log, Process(encoder, Path(log)) as process:
        found = []
        for path in args.files:
            say(f"{path} ...")
            same = compare(
                iterate_lines(path), ours, lambda texts: process.ask(texts)["coded"]
            )
            found.append({"file": path} | same)
    different = sum(one["different"] for one in found)
    lines = sum(one["lines"] for one in found)
    text = "\n".join(
        [*map(line_of, found), f"all: {lines:,} lines, {different:,} differ"]
    )
    result = {"lines": lines, "different": different, "files": found}
    cli.print_result(text, result, args.json)
    if different:
        sys.exit(EXIT_DIFFERENT)


def compare(lines: Iterable[str], ours: Coder, theirs: Coder) -> dict[str, Any]:
    """Compares what two programs make of the same lines.

    Returns the number of `lines`, how many are `different`, and the `first` of these
    (None: there is none): its `line` number from 1, its `text`, and each program's
    `[ids, decoded]` under its name.
    """
    count, different, first = 0, 0, None
    remaining = iter(lines)
    while chunk := list(itertools.islice(remaining, CHUNK)):
        pairs = zip(chunk, ours(chunk), theirs(chunk), strict=True)
        for number, (text, here, there) in enumerate(pairs, count + 1):
            if here != there:
                different += 1
                told = {"line": number, "text": text, OURS: here, THEIRS: there}
                first = first or told
        count += len(chunk)
    return {"lines": count, "different": different, "first": first}


def line_of(found: dict[str, Any]) -> str:
    """Writes the result of one file for people, in one line."""
    line = f"{found['file']}: {found['lines']:,} lines, {found['different']:,} differ"
    first = found["first"]
    if first is None:
        return line
    side = 0 if first[OURS][0] != first[THEIRS][0] else 1
    return (
        f"{line}, first line {first['line']} in its {('ids', 'decoded text')[side]}: "
        f"{first['text']!r} is {first[OURS][side]!r} by {OURS} and "
        f"{first[THEIRS][side]!r} by {THEIRS}"
    )


def our_coder(vocab_file: str) -> Coder:
    """Returns our half of the comparison; UserError: no such vocabulary, or damaged."""
    import tensorflow as tf

    from t2t_repro.tokenizers.load import load_tokenizer

    tokenizer = load_tokenizer(vocab_file)

    def code(texts: list[str]) -> list[list[Any]]:
        ids = tokenizer.encode(tf.constant(texts, tf.string))
        decoded = [text.decode() for text in tokenizer.decode(ids).numpy()]
        # tensor2tensor's encoder adds no EOS, so ours goes.
        rows = zip(ids.to_list(), decoded, strict=True)
        return [[row[:-1], text] for row, text in rows]

    return code


def _parse(argv: Sequence[str] | None) -> Namespace:
    parser = cli.ArgumentParser(
        "Compares word pieces with the real tensor2tensor's, line by line."
    )
    add = parser.add_argument
    add("files", nargs="+", help="texts, UTF-8, one sentence a line (.gz as well)")
    add("--t2t_python", required=True, help="Python 3.7 that has tensor2tensor 1.15.7")
    add("--vocab_file", required=True, help="a vocabulary of word pieces, *.subwords")
    args: Namespace = parser.parse_args(argv)
    if not args.vocab_file.endswith(".subwords"):
        parser.error("--vocab_file must be a vocabulary of word pieces, *.subwords")
    return args


if __name__ == "__main__":
    cli.run(main)
