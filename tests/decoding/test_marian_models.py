"""Marian's and Transformers' searches on models that Marian trained."""

import json
from functools import cache

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.system.atomic_file import read_lines
from tests.decoding.marian_decoder import MarianDecoder
from tests.decoding.results import hypothesis, with_limits

ACTIVATIONS = {"a_opus": "swish", "b_relu_labels": "relu", "c_gelu_separate": "gelu"}
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
    for case in ACTIVATIONS
    for program, names in SEARCHES.items()
    for name in names
    if (case, program, name) not in CASES
]


@cache
def decoder_of(folder, program):
    """Returns a model with a program's position encoding and epsilon."""
    return MarianDecoder(folder / "marian", ACTIVATIONS[folder.name], program)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("case", "program", "name"),
    [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE_CASES)],
)
def test_hypotheses_equal_those_of_the_program(shared_dir, case, program, name):
    folder = shared_dir / "marian" / case
    decoder = decoder_of(folder, program)
    expected = json.loads((folder / f"{program}.json").read_text(encoding="utf-8"))
    beam_size, alpha = SEARCHES[program][name]
    unknown = decoder.tokenizer.target.unknown_id
    search = DecodingConfig(
        beam_size,
        alpha,
        nbest=beam_size,
        algorithm=program,
        never=(unknown,) if name == "beam6_as_decoder_yml" else (),
        **LIMITS[program],
    )

    @tf.function(autograph=False)
    def run(inputs):
        limits = search.longest(tf.math.count_nonzero(inputs, 1, dtype=tf.int32))
        return with_limits(search, decoder, inputs, limits)

    inputs = decoder.tokenizer.encode(tf.constant(expected["sources"])).to_tensor()
    result = run(inputs)
    ours = decoder.orders[-1].ours
    for n, line in enumerate(expected[name]):
        if n in OTHER_INPUTS[program]:
            continue
        rows = [line["ids"]] if isinstance(line["ids"][0], int) else line["ids"]
        theirs = [tuple(ours[token] for token in row) for row in rows]
        assert [hypothesis(row) for row in result.ids[n]][: len(theirs)] == theirs
        scores = line.get("score", line.get("sequences_scores"))
        if scores is not None:
            np.testing.assert_allclose(result.scores[n], scores, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("program", LIMITS)
def test_1000_translations_equal_those_of_the_program(shared_dir, program):
    folder = shared_dir / "marian" / "a_opus"
    decoder = decoder_of(folder, program)
    search = DecodingConfig(4, 0.0, algorithm=program, **LIMITS[program])
    corpus = shared_dir / "corpora" / "multi30k" / "test_2016_flickr.en"
    lines = read_lines(corpus)
    expected = read_lines(folder / f"test_2016_flickr.{program}.de")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def translate(texts):
        inputs = decoder.tokenizer.encode(texts).to_tensor()
        limits = search.longest(tf.math.count_nonzero(inputs, 1, dtype=tf.int32))
        result = with_limits(search, decoder, inputs, limits)
        return decoder.tokenizer.target.decode(result.ids[:, 0])

    translations = []
    for start in range(0, len(lines), 50):
        texts = translate(tf.constant(lines[start : start + 50])).numpy()
        translations += [text.decode() for text in texts]
    assert len(translations) == 1000
    assert translations == expected
