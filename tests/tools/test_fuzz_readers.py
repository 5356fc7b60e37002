"""Test of the readers of untrusted files with random inputs."""

import random

import pytest
from fuzzing.targets import TARGETS, Readers, Target

from t2t_repro.system.errors import UserError
from tests.valid_files import Part

# Targets that build models or tokenizers get fewer inputs.
SLOW = {"marian", "opennmt", "tensor2tensor", "saved_model", "model_directory"}
SLOW |= {"word_pieces", "two_vocabularies", "marian_vocabulary", "sentencepiece"}


def mutate(data, draw):
    """Returns an input with changed, removed, repeated or inserted bytes."""
    changed = bytearray(data[1:])
    for _ in range(draw.randint(1, 4)):
        start = draw.randrange(len(changed) + 1)
        end = min(start + draw.choice([0, 1, 2, 16]), len(changed))
        new = draw.choice([b"", draw.randbytes(end - start), changed[start:end] * 2])
        changed[start:end] = new or draw.choice([b"\0", b"-1", b"{", b"9" * 20, b"\n"])
    return data[:1] + bytes(changed)


@pytest.mark.medium
@pytest.mark.parametrize("name", TARGETS)
def test_readers_refuse_random_inputs_in_one_line(name, tmp_path):
    readers, draw = Readers(TARGETS[name], tmp_path), random.Random(name)
    for seed in readers.seeds():
        assert readers.read(seed)
    for _ in range(3 if name in SLOW else 50):
        readers.read(mutate(draw.choice(readers.seeds()), draw))


def test_an_unnamed_exception_is_a_fault(tmp_path):
    def read(path):
        if (text := path.read_text()) != "valid":
            raise UserError if text == "damaged" else LookupError

    path = tmp_path / "file"
    target = Target(lambda folder: [Part(path, b"valid", path.write_bytes)], read)
    readers = Readers(target, tmp_path)
    assert readers.seeds() == [b"\0valid"]
    assert readers.read(b"\0valid") and not readers.read(b"\0damaged")
    with pytest.raises(LookupError):
        readers.read(b"\0other")
    assert path.read_text() == "valid"
