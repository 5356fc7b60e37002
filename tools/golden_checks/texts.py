"""Checks of text: BLEU, packed rows, linearized trees and subwords."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf

from golden_checks.packing import pack_pairs
from golden_checks.sheet import Sheet
from golden_checks.t2t_bleu import corpus_bleu, t2t_bleu, tokenize
from t2t_repro.problems.trees import read_tree, write_tags
from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.plain_tokenizer import split_words
from t2t_repro.tokenizers.tokenizer import EOS_ID, Tokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary

_PACKED = re.compile(r"packed(?:_spacing(\d+))?/(.+)")
_ROOT = Path(__file__).resolve().parents[2]


def columns(values: dict[str, Any]) -> dict[str, Any]:
    """Converts each list of records to one list per field, named `LIST/FIELD`."""
    lists: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            for field in value[0]:
                lists[f"{name}/{field}"] = [record.get(field) for record in value]
        else:
            lists[name] = value
    return lists


def check_bleu(sheet: Sheet) -> None:
    """Compares tensor2tensor's BLEU of text and of ids."""
    references, hypotheses = sheet.take("reference"), sheet.take("hypothesis")
    counts = sheet.take("sets/first_n")
    for name, cased in (("sets/bleu_cased", True), ("sets/bleu_uncased", False)):
        ours = [t2t_bleu(hypotheses[:n], references[:n], cased) for n in counts]
        # tensor2tensor rounds a fraction to float32 and multiplies it by 100.
        sheet.compare(name, ours, 2)
    lines = sheet.take("tokenize/text")
    sheet.compare_equal("tokenize/tokens", [tokenize(line) for line in lines])
    sides = (f"compute_bleu_ids/{side}" for side in ("reference", "hypothesis"))
    ours = list(map(corpus_bleu, *map(sheet.take, sides)))
    sheet.compare("compute_bleu_ids/bleu", ours, 1)


def check_packing_and_trees(sheet: Sheet) -> None:
    """Packs the examples, linearizes the trees and compares the results."""
    sides = sheet.group("examples/")
    rows = zip(*sides.values(), strict=True)
    examples = [dict(zip(sides, row, strict=True)) for row in rows]
    length, queue_size = sheet.take("packed_length"), sheet.take("queue_size")
    # A list with its own spacing between examples is named `packed_spacingN`.
    for match in filter(None, map(_PACKED.fullmatch, sheet.arrays)):
        spacing = int(match[1] or sheet.take("spacing"))
        packed = pack_pairs(examples, length, spacing, queue_size)
        sheet.compare_equal(match[0], [row[match[2]] for row in packed])
    linear = [words_and_tags(tree) for tree in sheet.take("trees/tree")]
    sheet.compare_equal("trees/words", [words for words, _ in linear])
    sheet.compare_equal("trees/tags", [tags for _, tags in linear])


def words_and_tags(tree: str) -> tuple[str, str]:
    """Splits a bracketed tree into words and tags.

    Raises UserError if the text is not a tree.
    """
    marks, words = read_tree(tree)
    return " ".join(words), " ".join(write_tags(marks[1:-1]))


def check_subwords(folder: Path, sheet: Sheet) -> None:
    """Encodes and decodes texts with tensor2tensor's vocabulary.

    The vocabulary is searched in the file's folder, in the parent of this folder, and
    in `t2t` in `$T2T_REPRO_SHARED` or ../shared.
    """
    name = sheet.take("vocab").split()[0]
    shared = Path(os.environ.get("T2T_REPRO_SHARED") or _ROOT.parent / "shared")
    places = [folder / name, folder.parent / name, shared / "t2t" / name]
    existing = [path for path in places if path.exists()]
    if not existing:
        folders = ", ".join(str(path.parent) for path in places)
        raise UserError(
            f"{sheet.file}: vocabulary {name} not found; copy it into one of {folders}"
        )
    tokenizer = load_tokenizer(existing[0])
    texts, ids = sheet.take("cases/text"), sheet.take("cases/ids")
    sheet.compare_equal("cases/ids", _encode(tokenizer, texts))
    sheet.compare_equal("cases/tokens", [split_words(text) for text in texts])
    decoded = tokenizer.decode(tf.ragged.constant(ids, tf.int32, ragged_rank=1))
    ours = [text.decode() for text in decoded.numpy()]
    sheet.compare_equal("cases/decoded", ours)


def check_built_vocabulary(folder: Path, sheet: Sheet) -> None:
    """Builds the vocabulary, encodes texts with it and compares both."""
    size = sheet.take("target_size")
    theirs = folder / f"built.{size}.subwords"
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / theirs.name
        build_vocabulary("wordpiece", read_lines(folder / "built_from.txt"), size, path)
        tokenizer = load_tokenizer(path)
        equal = path.read_bytes() == theirs.read_bytes()
    sheet.compare("vocab_size", tokenizer.vocab_size)
    if not equal:
        raise UserError(
            f"{theirs}: differs from the vocabulary that t2t_repro builds of "
            "built_from.txt; copy both files again"
        )
    sheet.take("max_subtoken_length")  # no effect: all words of the text are shorter
    sheet.compare_equal("cases/ids", _encode(tokenizer, sheet.take("cases/text")))


def _encode(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    """Encodes texts and removes EOS, which tensor2tensor's encoder does not add."""
    rows = tokenizer.encode(tf.constant(texts)).to_list()
    assert all(row[-1] == EOS_ID for row in rows)
    return [row[:-1] for row in rows]
