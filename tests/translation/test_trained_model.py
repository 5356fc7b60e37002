"""Tests of `t2t_repro.load`, whose results equal those of the commands."""

import json
import signal

import numpy as np
import pytest

import t2t_repro
from t2t_repro.decoding.config import Sampling
from t2t_repro.system.errors import UserError
from t2t_repro.translation.alignments import Aligner
from t2t_repro.translation.translator import Translator
from tests import run_command, tiny
from tests.system.test_gradients import count_resources

pytestmark = pytest.mark.medium

SOURCES = [source for source, _ in tiny.pairs("test")]


@pytest.fixture(scope="module")
def model(trained):
    return t2t_repro.load(str(trained.model_dir))


def test_it_translates_as_the_command_does(trained, model, tmp_path):
    text, output = tmp_path / "text", tmp_path / "output"
    text.write_text("\n".join([*SOURCES, ""]), encoding="utf-8")
    flags = ("--model_dir", str(trained.model_dir), "--input_file", str(text))
    process = run_command.run("translate", *flags, "--output_file", str(output))
    assert process.status == 0, process
    assert model.translate(SOURCES) == output.read_text(encoding="utf-8").splitlines()
    assert model.translate(SOURCES[0], beam_size=1) == model.translate(
        SOURCES[:1], beam_size=1
    )
    assert model.translate(["", " "]) == ["", ""]


def test_a_deleted_model_leaves_no_weights_in_memory(trained):
    def use():
        model = t2t_repro.load(trained.model_dir)
        model.translate(SOURCES[:1], unknown="replace", alignment=True)
        model.score([("one", "eins")])

    use()
    before = count_resources()
    use()
    # Objects of other tests may be deleted meanwhile.
    assert count_resources() <= before


def test_it_returns_hypotheses_with_scores_and_alignments(trained, model):
    results = model.translate([*SOURCES, ""], nbest=2, alignment=True)
    blank = results.pop()
    assert (blank.text, blank.score, len(blank.hypotheses)) == ("", 0, 1)
    assert [each.text for each in results] == model.translate(SOURCES)
    align = Aligner(model.model, model.tokenizer).pairs
    for source, result in zip(SOURCES, results, strict=True):
        texts = [each.text for each in result.hypotheses]
        scores = [each.score for each in result.hypotheses]
        assert (len(scores), scores) == (2, sorted(scores, reverse=True))
        assert result.score == scores[0]
        for each, pairs in zip(
            result.hypotheses, align([source] * 2, texts), strict=True
        ):
            penalty = ((5 + each.tokens) / 6) ** model.hparams.alpha
            assert each.score * penalty == pytest.approx(each.log_prob, abs=1e-4)
            assert each.alignment == tuple(sorted(pairs))
    (scored,) = model.translate(SOURCES[0], return_scores=True)
    assert scored.hypotheses[0].alignment is None
    assert len(scored.hypotheses) == 1


def test_it_translates_with_prefixes_and_terms(model, monkeypatch):
    plain = model.translate(SOURCES[:2])
    text = model.translate(SOURCES[:2], prefixes=["neun", ""])
    assert text[0].startswith("neun")
    assert text[1] == plain[1]
    settings = {"beam_size": 6, "extra_length": 20, "return_scores": True}
    word = SOURCES[0].split()[0]
    for terms in ({word: "neun"}, [["neun"], []]):
        results = model.translate(SOURCES[:2], terms=terms, **settings)
        assert "neun" in results[0].text.split()
        assert results[0].missing_terms == ()
    assert model.translate(SOURCES[:2], terms={}) == plain
    target = model.tokenizer.target
    unknown = int(target.encode(["neun"]).values[0])
    monkeypatch.setattr(target, "unknown_id", unknown)
    with pytest.warns(UserWarning, match="cannot spell neun"):
        (result,) = model.translate(SOURCES[:1], terms=[["neun"]], return_scores=True)
    assert (result.text, result.missing_terms) == (plain[0], ("neun",))


def test_it_keeps_placeholders(model):
    plain = model.translate(SOURCES[0], nbest=2)[0]
    texts = [f"{SOURCES[0]} {{0}}", "%s", f"<b>{SOURCES[0]}</b>"]
    first, second, third = model.translate(
        texts, nbest=2, placeholders=["braces", "%s", "tags"]
    )
    assert [each.text for each in first.hypotheses] == [
        f"{each.text} {{0}}" for each in plain.hypotheses
    ]
    assert first.score == pytest.approx(plain.score, abs=1e-4)
    assert (second.text, second.score) == ("%s", 0)
    assert third.text == f"<b>{plain.text}</b>"
    word = SOURCES[0].split()[0]
    settings = {"beam_size": 6, "extra_length": 20, "return_scores": True}
    (result,) = model.translate(
        f"%s {SOURCES[0]}", terms={word: "neun"}, placeholders="printf", **settings
    )
    assert "neun" in result.text.split() and result.text.startswith("%s ")
    assert result.missing_terms == ()


def test_it_translates_texts_of_several_lines_and_sentences(model):
    one, two, three = model.translate(["one.", "Two!", "three"])
    texts = ["one.\r\n\nthree\n", "one."]
    assert model.translate(texts) == [f"{one}\r\n\n{three}\n", one]
    text = "one. Two!\nthree"
    settings = {"split_sentences": True, "placeholders": "braces"}
    (result,) = model.translate(f"{{a. B}} {text}", return_scores=True, **settings)
    assert result.text == f"{{a. B}} {one} {two}\n{three}"
    parts = model.translate(["one.", "Two!", "three"], return_scores=True)
    assert result.score == pytest.approx(sum(p.score for p in parts) / 3, abs=1e-5)
    for name in ("tokens", "log_prob"):
        values = [getattr(part.hypotheses[0], name) for part in parts]
        value = getattr(result.hypotheses[0], name)
        assert value == pytest.approx(sum(values), abs=1e-4)
    settings = {"beam_size": 6, "extra_length": 20, "split_sentences": True}
    terms = {"three": "neun"}
    (result,) = model.translate(text, terms=terms, return_scores=True, **settings)
    assert "neun" in result.text.split("\n")[1].split()
    assert result.missing_terms == ()
    long, settings = "one two " * 300, {"extra_length": 1, "length_factor": 0.0}
    with pytest.warns(UserWarning, match=r"cut to 512 subwords.*: 1 of 2 texts"):
        (cut, _) = model.translate([long, "one"], nbest=1, **settings)
    (whole,) = model.translate(long, return_scores=True, **settings)
    assert (cut.cut, whole.cut) == (True, False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"terms": [[], []], "split_sentences": True}, "and a list of terms cannot be"),
        ({"nbest": 3, "beam_size": 2}, "nbest 3 exceeds the beam size 2"),
        ({"prefixes": ["a"]}, "2 sentences, but 1 prefixes"),
        ({"prefixes": ["", "neun " * 50]}, "'neun neun .* translation at most"),
        ({"terms": [["a"]]}, "2 sentences, but 1 terms"),
        ({"terms": ["a", "b"]}, "one list per sentence"),
        ({"terms": {" ": "b"}}, "blank term"),
        ({"terms": [["a"], [" "]]}, "blank term"),
        ({"terms": {"a  b": "c", "a b": "d"}}, "a source term twice"),
        ({"terms": {"a": 5}}, r"terms\[0\] must be a string, not 5"),
        (
            {"placeholders": "tags", "terms": {"one": "<b>eins</b>"}},
            "'<b>eins</b>' contains the placeholder '<b>'",
        ),
        ({"placeholders": ["("]}, "not a valid regular expression"),
        ({"unknown": "drop"}, "unknown is 'drop', must be one of"),
        ({"unknown": "forbid", "never": [7]}, "unknown and never cannot be combined"),
        ({"sampling": Sampling(), "algorithm": "t2t"}, "sampling and algorithm cannot"),
        ({"algorithm": ["t2t"]}, r"algorithm is \['t2t'\], must be one of"),
        ({"never": 5}, "never must be token ids, not 5"),
        ({"terms": 3}, "one list per sentence"),
        ({"never": [10**6]}, "never contains 1000000, which is not a target id"),
        ({"batch_size": 0}, "batch_size is 0, must be a whole number"),
        ({"min_length": 1000}, "min_length is 1000, but the translation of a sentence"),
        ({"length": 3}, "unexpected keyword argument 'length'"),
    ],
)
def test_rejects_settings_that_it_would_ignore(model, settings, message):
    with pytest.raises((ValueError, TypeError, UserError), match=message):
        model.translate(SOURCES[:2], **settings)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (b"one", "texts must be strings, not bytes"),
        ({"one": 1}, "texts must be strings, not dict"),
        (None, "texts must be strings, not NoneType"),
        (["one", b"two"], r"texts\[1\] must be a string, not b'two'"),
        (["one", None], r"texts\[1\] must be a string, not None"),
        (["one", "a\ud800"], r"texts\[1\] contains '\\ud800', which UTF-8 cannot"),
    ],
)
def test_rejects_values_that_are_not_texts(model, texts, message):
    with pytest.raises((TypeError, ValueError), match=message):
        model.translate(texts)


def test_reads_any_ordered_texts(model):
    expected = model.translate(SOURCES[:2])
    for texts in (tuple(SOURCES[:2]), iter(SOURCES[:2]), np.array(SOURCES[:2])):
        assert model.translate(texts) == expected
    numbers = {"batch_size": np.int64(1), "beam_size": np.int64(2)}
    assert model.translate(SOURCES[:2], **numbers, alpha=np.float32(0.6)) == expected


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("ab", r"pairs\[0\] must be a source and a target"),
        (("one",), r"pairs\[0\] must be a source and a target"),
        (("one", None), r"pairs\[0\]\[1\] must be a string, not None"),
    ],
)
def test_rejects_values_that_are_not_pairs(model, pair, message):
    with pytest.raises((TypeError, ValueError), match=message):
        model.score([pair])


def test_rejects_a_value_other_than_pairs(model):
    with pytest.raises(TypeError, match="pairs must be pairs of strings, not None"):
        model.score(None)


def test_n_best_lists_are_for_single_lines(model):
    with pytest.raises(ValueError, match="a text with a line break and nbest"):
        model.translate("one\ntwo", nbest=2)


def test_it_scores_as_the_command_does(trained, model, tmp_path):
    targets = model.translate(SOURCES)
    for name, lines in (("source", SOURCES), ("target", targets)):
        text = "".join(f"{line}\n" for line in lines)
        (tmp_path / name).write_text(text, encoding="utf-8")
    flags = ("--source_file", tmp_path / "source", "--target_file", tmp_path / "target")
    words = ("--model_dir", str(trained.model_dir), *map(str, flags), "--json")
    process = run_command.run("score", *words)
    assert process.status == 0, process
    scores = model.score(zip(SOURCES, targets, strict=True))
    corpus = json.loads(process.out.splitlines()[-1])
    assert sum(scores) == pytest.approx(corpus["log_prob"], abs=1e-3)
    with pytest.warns(UserWarning, match=r"cut to 512 subwords.*: 1 of 2 sources"):
        model.score([("one two " * 300, "eins"), ("one", "eins")])


def test_a_loaded_model_is_a_keras_model(trained):
    model = t2t_repro.load(trained.model_dir)
    assert isinstance(model.model, t2t_repro.Transformer)
    ids = model.tokenizer.encode([SOURCES[0]]).to_tensor()
    logits = model.model({"inputs": ids, "targets": ids})
    assert logits.shape == (*ids.shape, model.model.vocab_size)
    assert model.hparams.d_model == model.model.d_model


def test_rejects_a_folder_without_a_model(tmp_path):
    with pytest.raises(Exception, match=str(tmp_path)):
        t2t_repro.load(tmp_path)


def test_rejects_an_unknown_precision(trained):
    with pytest.raises(UserError, match="precision is 'float64', must be one of"):
        t2t_repro.load(trained.model_dir, precision="float64")


def test_the_package_has_only_its_public_names():
    assert {"layers", "load"} <= set(dir(t2t_repro))
    with pytest.raises(AttributeError, match="no attribute 'rooms'"):
        _ = t2t_repro.rooms


def test_ctrl_c_waits_until_the_batch_is_translated(trained, model, monkeypatch):
    """TensorFlow may crash if a signal handler raises in its calls."""
    read, finished = Translator._read, []

    def interrupted(translator, *results, **options):
        signal.raise_signal(signal.SIGINT)
        finished.append(read(translator, *results, **options))
        return finished[-1]

    monkeypatch.setattr(Translator, "_read", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            model.translate(SOURCES)
        flags = ("--model_dir", str(trained.model_dir))
        stdin = "\n".join(SOURCES).encode()
        statuses = [
            run_command.run("translate", *flags, stdin=stdin).status,
            run_command.run("evaluate", *flags).status,
        ]
    finally:
        signal.signal(signal.SIGINT, before)
    assert (len(finished), statuses) == (3, [130, 130])
