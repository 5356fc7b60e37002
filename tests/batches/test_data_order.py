"""The order of the data of two small corpora is what it was at revision 7ec88a7.

Whoever trains on with a later release reads on where the training stood, so what an
order was it must stay. `tests/data/data_order` holds, for each corpus, its lengths in
subwords and which pairs made the batches of two epochs, as that revision dealt them:

- `numbers`: the first pairs of the built-in corpus at that revision;
- `syllables`: words made up by arithmetic, one to ten in a line.

A part of a batch is written as `[[rows, source width, target width], [pairs]]`, pairs
by number from 0 in the order of the rows. Of each epoch the first batches are written
out, of all of them there is a hash. NumPy keeps its permutations from release to
release, but does not promise it.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from t2t_repro import datagen
from t2t_repro.batches import pipeline
from t2t_repro.batches.batching import BatchingConfig, plan_epoch
from t2t_repro.batches.packed_batch import rectangle
from t2t_repro.data.encoded_pairs import EncodedPairs

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
    """The first pairs of a corpus."""
    sides = (FOLDER / f"{name}.{lang}" for lang in ("en", "de"))
    lines = (path.read_text(encoding="utf-8").splitlines() for path in sides)
    return list(zip(*lines, strict=True))[:pairs]


def lengths_of(text, vocabulary, folder):
    """Encodes pairs by the public command: the subwords of each, EOS included."""
    for split, pairs in (("train", text), ("val", text[:5])):
        for lang, lines in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
            written = "".join(f"{line}\n" for line in lines)
            (folder / f"{split}.{lang}").write_text(written, encoding="utf-8")
    arguments = ["--problem", "files", "--data_dir", str(folder)]
    datagen.main([*arguments, "--hparams", f"base,{vocabulary}"])
    (path,) = folder.glob("encoded/*/train/*.lengths.npy")
    return np.load(path)


def marked(lengths):
    """Pairs of these lengths whose sources tell their number: all n + 2."""
    return EncodedPairs.from_lists(
        [[n + 2] * (source - 1) + [1] for n, (source, _) in enumerate(lengths)],
        [[2] * (target - 1) + [1] for _, target in lengths],
    )


def parts_of(batch):
    """Writes a batch that the training reads as the files do."""
    parts = []
    for number in range(len(batch["inputs"])):
        inputs, targets = (side.numpy() for side in rectangle(batch, number))
        numbers = [first - 2 for first in inputs[:, 0].tolist() if first]
        parts.append([[*inputs.shape, targets.shape[1]], numbers])
    return parts


def epochs_of(lengths, order):
    """Reads two epochs: of each its batches, as the files write them."""
    config, seed = BatchingConfig(**order["config"]), order["seed"]
    size = plan_epoch(np.array(lengths), config, seed, epoch=0).batches
    read = pipeline.batches(marked(lengths), config, seed).take(2 * size)
    batches = [parts_of(batch) for batch in read.as_numpy_iterator()]
    return batches[:size], batches[size:]


def digest(batches):
    """A hash of the batches as JSON without spaces."""
    text = json.dumps(batches, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("name", CORPORA)
def test_the_text_is_cut_into_as_many_subwords_as_before(name, tmp_path):
    corpus = CORPORA[name]
    text = text_of(name, len(corpus["lengths"]))
    found = lengths_of(text, corpus["vocabulary"], tmp_path)
    assert found.tolist() == corpus["lengths"]


@pytest.mark.parametrize(("name", "order"), ORDERS)
def test_the_batches_of_two_epochs_hold_the_pairs_that_they_held_before(name, order):
    found = epochs_of(CORPORA[name]["lengths"], order)
    for batches, expected in zip(found, order["epochs"], strict=True):
        assert batches[: len(expected["first"])] == expected["first"]
        assert len(batches) == expected["batches"]
        assert digest(batches) == expected["sha256"]


@pytest.mark.parametrize(("name", "order"), ORDERS)
def test_the_pairs_of_a_step_are_numbered_as_before(name, order):
    """As a training names them when it skips an update."""
    lengths = CORPORA[name]["lengths"]
    pairs, config = marked(lengths), BatchingConfig(**order["config"])
    plan = plan_epoch(pairs.lengths, config, order["seed"], epoch=1)
    assert plan.dropped == order["dropped"]
    for epoch, expected in enumerate(order["epochs"]):
        for batch, parts in enumerate(expected["first"]):
            step = epoch * expected["batches"] + batch
            found = pipeline.pair_numbers(pairs, config, order["seed"], step)
            assert found.tolist() == [n for _, numbers in parts for n in numbers]
