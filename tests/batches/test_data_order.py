"""The batches of two small corpora are the same as at earlier revisions.

A training run may resume with a later release, so the order of the data must not
change. For each corpus, `tests/data/data_order` contains the lengths in tokens and the
batches of two epochs, at revision 7ec88a7 or, for packed rows, c7e73a4:

- `numbers`: the first pairs of the built-in corpus;
- `syllables`: generated words, one to ten per line.

A micro-batch is written as `[[rows, source width, target width], [pairs]]`, with pair
numbers from 0 in the order of the rows; for packed rows, these are lists with the pairs
of each row. The files contain the first batches of each epoch and a hash of all of
them. NumPy's permutations have not changed between releases,
but NumPy does not guarantee this.
"""

import hashlib
import json
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest

from t2t_repro import datagen
from t2t_repro.batches import pipeline
from t2t_repro.batches.batching import BatchingConfig, plan_epoch
from t2t_repro.batches.packed_batch import rectangle
from t2t_repro.data.encoded_pairs import EncodedPairs
from t2t_repro.tokenizers.tokenizer import EOS_ID

FOLDER = Path(__file__).resolve().parents[1] / "data" / "data_order"
CORPORA = {
    name: json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    for name in ("numbers", "syllables")
}
ORDERS = [
    pytest.param(name, order, id=f"{name}-{number}")
    for name, corpus in CORPORA.items()
    for number, order in enumerate(corpus["orders"])
]


def text_of(name, pairs):
    """Returns the first pairs of a corpus."""
    sides = (FOLDER / f"{name}.{lang}" for lang in ("en", "de"))
    lines = (path.read_text(encoding="utf-8").splitlines() for path in sides)
    return list(zip(*lines, strict=True))[:pairs]


def lengths_of(text, vocabulary, folder):
    """Encodes pairs with datagen and returns their lengths in tokens, EOS included."""
    for split, pairs in (("train", text), ("val", text[:5])):
        for lang, lines in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
            contents = "".join(f"{line}\n" for line in lines)
            (folder / f"{split}.{lang}").write_text(contents, encoding="utf-8")
    arguments = ["--problem", "files", "--data_dir", str(folder)]
    datagen.main([*arguments, "--hparams", f"base,{vocabulary}"])
    (path,) = folder.glob("encoded/*/train/*.lengths.npy")
    return np.load(path)


def numbered_pairs(lengths):
    """Returns pairs of the given lengths; all source tokens of pair n are n + 2."""
    return EncodedPairs.from_lists(
        [[n + 2] * (source - 1) + [1] for n, (source, _) in enumerate(lengths)],
        [[2] * (target - 1) + [1] for _, target in lengths],
    )


def microbatches_of(batch, is_packed):
    """Returns the micro-batches of a batch in the format of `tests/data/data_order`."""
    microbatches = []
    for number in range(len(batch["inputs"])):
        inputs, targets = (side.numpy() for side in rectangle(batch, number))
        rows = [pairs_of(row) for row in inputs.tolist()]
        shape = [*inputs.shape, targets.shape[1]]
        microbatches.append([shape, rows if is_packed else list(chain(*rows))])
    return microbatches


def pairs_of(row):
    """Returns the numbers of the pairs in a row of source tokens."""
    return [n - 2 for before, n in pairwise([EOS_ID, *row]) if before == EOS_ID and n]


def epochs_of(lengths, order):
    """Returns the batches of two epochs in the format of `tests/data/data_order`."""
    config, seed = BatchingConfig(**order["config"]), order["seed"]
    size = plan_epoch(np.array(lengths), config, seed, epoch=0).batches
    read = pipeline.batches(numbered_pairs(lengths), config, seed).take(2 * size)
    is_packed = config.kind == "packed"
    batches = [microbatches_of(batch, is_packed) for batch in read.as_numpy_iterator()]
    return batches[:size], batches[size:]


def digest(batches):
    """Returns a hash of the batches as JSON without spaces."""
    text = json.dumps(batches, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("name", CORPORA)
def test_number_of_tokens_has_not_changed(name, tmp_path):
    corpus = CORPORA[name]
    text = text_of(name, len(corpus["lengths"]))
    lengths = lengths_of(text, corpus["vocabulary"], tmp_path)
    assert lengths.tolist() == corpus["lengths"]


@pytest.mark.parametrize(("name", "order"), ORDERS)
def test_batches_of_two_epochs_have_not_changed(name, order):
    epochs = epochs_of(CORPORA[name]["lengths"], order)
    for batches, expected in zip(epochs, order["epochs"], strict=True):
        assert batches[: len(expected["first"])] == expected["first"]
        assert len(batches) == expected["batches"]
        assert digest(batches) == expected["sha256"]


@pytest.mark.parametrize(("name", "order"), ORDERS)
def test_pair_numbers_of_a_step_have_not_changed(name, order):
    """Training logs these numbers when it skips a step."""
    lengths = CORPORA[name]["lengths"]
    pairs, config = numbered_pairs(lengths), BatchingConfig(**order["config"])
    plan = plan_epoch(pairs.lengths, config, order["seed"], epoch=1)
    assert plan.dropped == order["dropped"]
    for epoch, expected in enumerate(order["epochs"]):
        for batch, microbatches in enumerate(expected["first"]):
            step = epoch * expected["batches"] + batch
            actual = pipeline.pair_numbers(pairs, config, order["seed"], step)
            numbers = chain.from_iterable(numbers for _, numbers in microbatches)
            if config.kind == "packed":
                numbers = chain.from_iterable(numbers)
            assert actual.tolist() == list(numbers)
