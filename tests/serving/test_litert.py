"""The LiteRT export and its client translate like the model."""

import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.serving import litert, litert_client
from t2t_repro.serving.litert import LiteRTSteps, write_litert
from t2t_repro.serving.litert_client import LiteRTTranslator, beam_search
from t2t_repro.system.errors import UserError
from t2t_repro.translation.translator import Translator
from tests.decoding import plain_search
from tests.serving import small

LINES = [*small.sentences(8), "", " ".join(small.sentences(6)[:2])]
SOURCE_LENGTH = 24


class Graphs:
    """`LiteRTSteps` with the interface of LiteRT's interpreter."""

    def __init__(self, steps):
        self._functions = steps.functions

    def get_signature_runner(self, name):
        function = self._functions[name]

        def runner(**inputs):
            return {name: each.numpy() for name, each in function(**inputs).items()}

        specs = function.get_concrete_function().structured_input_signature[1]
        specs |= {each.name: each for each in function.input_signature}
        shapes = {name: {"shape": each.shape.as_list()} for name, each in specs.items()}
        runner.get_input_details = lambda: shapes
        outputs = function.get_concrete_function().structured_outputs.items()
        outputs = {name: {"shape": each.shape.as_list()} for name, each in outputs}
        runner.get_output_details = lambda: outputs
        return runner


pytestmark = pytest.mark.medium


@pytest.fixture
def translator_of(tmp_path, monkeypatch):
    """Returns a function that creates the client of a model that is not converted."""
    monkeypatch.setattr(litert, "convert", lambda *_: b"")

    def create(model, tokenizer, search):
        write_litert(model, tokenizer, search, tmp_path, "float32", SOURCE_LENGTH)
        steps = LiteRTSteps(model, search, SOURCE_LENGTH)
        return LiteRTTranslator(tmp_path, Graphs(steps))

    return create


def translations(model, tokenizer, search):
    """Returns the texts and scores of the package's own search."""
    translator = Translator(model, tokenizer, search, SOURCE_LENGTH)
    results = translator.translate_window(LINES)
    return [each.text for each in results], [each.score for each in results]


@pytest.mark.parametrize("beam", [1, 3])
def test_translates_like_the_model(model, tokenizer, translator_of, beam):
    search = DecodingConfig(beam, extra_length=small.EXTRA_LENGTH)
    client = translator_of(model, tokenizer, search)
    texts, scores = translations(model, tokenizer, search)
    assert [client.translate(line) for line in LINES] == texts
    ids = tokenizer.encode(LINES[:3]).to_list()
    found = [client.translate_ids(row).score for row in ids]
    np.testing.assert_allclose(found, scores[:3], rtol=1e-4)


def test_translates_like_a_marian_model(marian_arguments, translator_of):
    (model,), tokenizer, search, _ = marian_arguments
    client = translator_of(model, tokenizer, search)
    texts, _ = translations(model, tokenizer, search)
    assert [client.translate(line) for line in LINES] == texts


@pytest.mark.parametrize("seed", range(20))
def test_searches_like_plain_marian(seed):
    generator = np.random.default_rng(seed)
    table = np.log(generator.dirichlet(np.full(7, 0.5), size=(9, 7)))
    beam, limit, alpha, word_penalty = 3, 6, 0.8, 0.1 * (seed % 2)

    def log_probs(ids):
        return table[len(ids), ids[-1] if ids else 0]

    expected = plain_search.marian(log_probs, limit, beam, alpha, word_penalty)
    length = 0

    def step(last, parents):
        nonlocal length
        length += 1
        return table[length - 1, last]

    settings = {"algorithm": "marian", "alpha": alpha, "never": [0]}
    settings["word_penalty"] = word_penalty
    best = beam_search(step, beam, limit, settings)
    assert tuple(best.ids) == expected[0].ids
    assert best.score == pytest.approx(expected[0].score, rel=1e-5)


def test_reports_a_line_that_is_cut(model, tokenizer, translator_of, capsys):
    client = translator_of(model, tokenizer, DecodingConfig(1, extra_length=2))
    long = client.translate_ids([*[5] * 30, 1])
    assert capsys.readouterr().err == "cut a line of 31 to 24 subwords\n"
    assert long == client.translate_ids([*[5] * 23, 1])


def test_rejects_damaged_files_and_those_of_another_export(
    model, tokenizer, tmp_path, monkeypatch
):
    monkeypatch.setattr(litert, "convert", lambda *_: b"")
    search = DecodingConfig(1)
    write_litert(model, tokenizer, search, tmp_path, "float32", SOURCE_LENGTH)
    graphs = Graphs(LiteRTSteps(model, search, SOURCE_LENGTH))
    path = tmp_path / "search.json"
    written = json.loads(path.read_text())
    without = {key: value for key, value in written.items() if key != "limits"}
    damaged = r"search\.json is damaged; export the model again"
    for values, message in (
        (written | {"sizes": [1] * 6}, "are of different exports"),
        (without, damaged),
        (written | {"limits": None}, damaged),
        (["limits"], damaged),
        (5, damaged),
    ):
        path.write_text(json.dumps(values))
        with pytest.raises(ValueError, match=message):
            LiteRTTranslator(tmp_path, graphs)


def test_reads_the_same_lines_as_translate(monkeypatch):
    """Only LF ends a line; a byte order mark and CR before LF are dropped."""
    fake = SimpleNamespace(translate=repr)
    monkeypatch.setattr(litert_client, "LiteRTTranslator", lambda _: fake)
    contents = b"\xef\xbb\xbfone\rtwo\r\n\n\xfc"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(contents)))
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output))
    litert_client.main()
    assert output.getvalue().decode() == "'one\\rtwo'\n''\n'\ufffd'\n"


@pytest.mark.parametrize(
    ("settings", "search", "message"),
    [
        ({"self_attention_radius": 2}, {}, "self_attention_radius=2: the LiteRT"),
        ({}, {"algorithm": "opennmt"}, "search=opennmt: .* supports only t2t, marian"),
    ],
)
def test_rejects_models_that_it_does_not_support(tmp_path, settings, search, message):
    model = small.random_model(20, **settings)
    with pytest.raises(UserError, match=message):
        write_litert(model, None, DecodingConfig(**search), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_client_describes_itself(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["litert_client.py", "--help"])
    with pytest.raises(SystemExit) as stopped:
        litert_client.main()
    assert stopped.value.code == 0
    assert "litert_client.py < text.en > text.de" in capsys.readouterr().out


def test_no_slice_of_a_step_has_both_an_index_and_a_new_axis(model):
    steps = LiteRTSteps(model, DecodingConfig(2, extra_length=2), SOURCE_LENGTH)
    graph = steps.functions["step"].get_concrete_function().graph
    slices = [each for each in graph.get_operations() if each.type == "StridedSlice"]
    assert slices
    masks = ("shrink_axis_mask", "new_axis_mask")
    assert not [each for each in slices if all(map(each.get_attr, masks))]
