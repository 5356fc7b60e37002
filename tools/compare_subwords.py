"""Compares our word pieces with the real tensor2tensor's, on every line of any text.

    python tools/compare_subwords.py --t2t_python t2t-venv/bin/python
        --vocab_file vocab.translate_ende_wmt32k.32768.subwords train.en train.de

Every line is encoded and decoded twice with the same vocabulary: by t2t_repro's
tokenizer in the graph, and by tensor2tensor's SubwordTextEncoder in a process of its
own. Ids and decoded texts must be equal. Prints one line per file and exits with
status 1 if anything differs. t2t_repro must be installed; tensor2tensor's
environment is Python 3.7 with tensorflow 1.15.5 and tensor2tensor 1.15.7.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError
from t2t_repro.system.text_files import iterate_lines

PEER = Path(__file__).resolve().parent / "peers" / "tensor2tensor_subwords.py"
OURS, THEIRS = "t2t_repro", "tensor2tensor"
EXIT_DIFFERENT = 1
CHUNK = 2000  # Lines that both programs hold in memory at once.

# For each text its ids, without EOS, and the text that they decode to.
Coded = list[tuple[list[int], str]]
Coder = Callable[[list[str]], Coded]


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, compares file by file and prints what differs."""
    args = _parse(argv)
    for path in args.files:
        next(iterate_lines(path))  # A bad name shows before the work, not after it.
    cli.start_tensorflow(args.verbose)
    ours = our_coder(args.vocab_file)
    with their_coder(args.t2t_python, args.vocab_file) as theirs:
        found = []
        for path in args.files:
            print(f"{path} ...", file=sys.stderr, flush=True)
            found.append({"file": path} | compare(iterate_lines(path), ours, theirs))
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

    Args:
        lines: the texts.
        ours: encodes and decodes a list of texts.
        theirs: the same, by the other program.

    Returns:
        The number of `lines`, how many are `different`, and the `first` of these
        (None: there is none): its `line` number from 1, its `text`, and what each
        program made of it, `[ids, decoded]` under its name.
    """
    count, different, first = 0, 0, None
    remaining = iter(lines)
    while chunk := list(itertools.islice(remaining, CHUNK)):
        pairs = zip(chunk, ours(chunk), theirs(chunk), strict=True)
        for number, (text, here, there) in enumerate(pairs, count + 1):
            if here != there:
                different += 1
                first = first or {
                    "line": number,
                    "text": text,
                    OURS: here,
                    THEIRS: there,
                }
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
    """Returns our half of the comparison.

    Raises:
        UserError: there is no such vocabulary, or it is damaged.
    """
    import tensorflow as tf

    from t2t_repro.tokenizers.load import load_tokenizer

    tokenizer = load_tokenizer(vocab_file)

    def code(texts: list[str]) -> Coded:
        ids = tokenizer.encode(tf.constant(texts, tf.string))
        decoded = [text.decode() for text in tokenizer.decode(ids).numpy()]
        # tensor2tensor's encoder adds no EOS, so ours goes.
        bare = [row[:-1] for row in ids.to_list()]
        return list(zip(bare, decoded, strict=True))

    return code


@contextmanager
def their_coder(python: str, vocab_file: str) -> Iterator[Coder]:
    """Gives their half of the comparison: `peers/tensor2tensor_subwords.py` at work.

    The process lives as long as the context.

    Args:
        python: the interpreter that has tensor2tensor.
        vocab_file: the vocabulary.

    Yields:
        What encodes and decodes a list of texts; it raises UserError, with the last
        words of the process, if that has ended.

    Raises:
        UserError: the interpreter is no program.
    """
    command = [python, str(PEER), "--vocab_file", vocab_file]
    # Our modules are not for its Python.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment |= {"CUDA_VISIBLE_DEVICES": "-1", "PYTHONIOENCODING": "utf-8"}
    pipe = subprocess.PIPE
    with tempfile.TemporaryFile() as log:
        try:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=pipe,
                stdout=pipe,
                stderr=log,
                encoding="utf-8",
            )
        except OSError as error:
            raise UserError(f"--t2t_python {python}: {error.strerror}") from None
        try:
            yield lambda texts: _ask(process, texts, log)
        finally:
            process.kill()
            process.communicate()


def _ask(process: subprocess.Popen[str], texts: list[str], log: IO[bytes]) -> Coded:
    """Sends the peer one request and returns its answer."""
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(json.dumps(texts) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
    except (BrokenPipeError, ValueError):  # It has ended, or never was Python.
        process.kill()
        process.wait()
        log.seek(0)
        said = log.read().decode("utf-8", errors="replace").strip()
        last = said.rpartition("\n")[2] or "it said nothing"
        raise UserError(f"{THEIRS} failed: {last}; see --t2t_python") from None
    return [(ids, decoded) for ids, decoded in answer]


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
