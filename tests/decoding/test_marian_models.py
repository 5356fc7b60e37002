"""Marian's and Transformers' searches on models that Marian trained."""

import json
from functools import cache

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.interop.marian.importer import read
from t2t_repro.models.cached_decoder import CachedDecoder
from t2t_repro.models.generate import generate
from t2t_repro.system.atomic_file import read_lines
from tests.decoding.results import hypothesis
from tests.interop.marian.vectors import from_program_ids, orders

MODELS = ("a_opus", "b_relu_labels", "c_gelu_separate")
# Length limits of the recorded searches; Transformers counts the start token.
LIMITS = {
    "marian": {"length_factor": 3.0, "extra_length": 0},
    "transformers": {"length_factor": 0.0, "extra_length": 199},
}
# Lines that the programs encode differently: Marian skips blank lines, and Transformers
# interprets special tokens in a text.
OTHER_INPUTS = {"marian": (18, 19), "transformers": (37,)}
SEARCHES = {
    "marian": {
        "greedy": (1, 0.0),
        "beam4_normalize_0": (4, 0.0),
        "beam4_normalize_0.6": (4, 0.6),
        "beam4_normalize_1": (4, 1.0),
        "beam6_as_decoder_yml": (6, 1.0),
    },
    "transformers": {
        "greedy": (1, 0.0),
        "beam4_length_penalty_0": (4, 0.0),
        "beam4_length_penalty_1": (4, 1.0),
    },
}


# Every search with one of the models except one that differs from two others only in
# the beam size or alpha, and both programs with another model.
CASES = [
    *(("a_opus", p, name) for p, names in SEARCHES.items() for name in names),
    ("b_relu_labels", "marian", "beam6_as_decoder_yml"),
    ("b_relu_labels", "transformers", "beam4_length_penalty_1"),
]
CASES.remove(("a_opus", "marian", "beam4_normalize_1"))
MORE_CASES = [
    (case, program, name)
    for case in MODELS
    for program, names in SEARCHES.items()
    for name in names
    if (case, program, name) not in CASES
]


@cache
def imported(folder, program):
    """Returns the model of a program, its tokenizer and the program's target ids."""
    source = read(folder / program, positions=program)
    model = source.build(source.hparams.replace(dropout=0.0))
    return model, source.tokenizer, orders(folder / program, source.tokenizer)[1]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("case", "program", "name"),
    [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE_CASES)],
)
def test_hypotheses_equal_those_of_the_program(shared_dir, case, program, name):
    folder = shared_dir / "marian" / case
    model, tokenizer, order = imported(folder, program)
    expected = json.loads((folder / f"{program}.json").read_text(encoding="utf-8"))
    beam_size, alpha = SEARCHES[program][name]
    unknown = tokenizer.target.unknown_id
    search = DecodingConfig(
        beam_size,
        alpha,
        nbest=beam_size,
        algorithm=program,
        never=(unknown,) if name == "beam6_as_decoder_yml" else (),
        **LIMITS[program],
    )

    decoder = CachedDecoder(model, beam_size)

    @tf.function(autograph=False)
    def run(inputs):
        return generate(search, decoder, inputs)

    result = run(tokenizer.encode(tf.constant(expected["sources"])).to_tensor())
    for n, line in enumerate(expected[name]):
        if n in OTHER_INPUTS[program]:
            continue
        rows = [line["ids"]] if isinstance(line["ids"][0], int) else line["ids"]
        theirs = [tuple(from_program_ids(row, order)) for row in rows]
        assert [hypothesis(row) for row in result.ids[n]][: len(theirs)] == theirs
        scores = line.get("score", line.get("sequences_scores"))
        if scores is not None:
            np.testing.assert_allclose(result.scores[n], scores, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("program", LIMITS)
def test_1000_translations_equal_those_of_the_program(shared_dir, program):
    folder = shared_dir / "marian" / "a_opus"
    model, tokenizer, _ = imported(folder, program)
    decoder = CachedDecoder(model, 4)
    search = DecodingConfig(4, 0.0, algorithm=program, **LIMITS[program])
    corpus = shared_dir / "corpora" / "multi30k" / "test_2016_flickr.en"
    lines = read_lines(corpus)
    expected = read_lines(folder / f"test_2016_flickr.{program}.de")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def translate(texts):
        result = generate(search, decoder, tokenizer.encode(texts).to_tensor())
        return tokenizer.target.decode(result.ids[:, 0])

    translations = []
    for start in range(0, len(lines), 50):
        texts = translate(tf.constant(lines[start : start + 50])).numpy()
        translations += [text.decode() for text in texts]
    assert len(translations) == 1000
    assert translations == expected
