"""Options that cannot be combined, in the command and in Python."""

from itertools import combinations

import pytest

import t2t_repro
from t2t_repro import translate
from t2t_repro.command_line.translate_flags import read_options
from t2t_repro.decoding.config import Sampling
from t2t_repro.system.errors import UserError
from t2t_repro.texts.placeholders import Placeholders
from t2t_repro.translation.options import TranslationOptions

# Flags and arguments of each option, in several forms. FILE is a file of terms.
FILE = object()
SETTINGS = {
    "beam_size": [(["--beam_size", "2"], {"beam_size": 2})],
    "alpha": [(["--alpha", value], {"alpha": float(value)}) for value in "02"],
    "extra_length": [(["--extra_length", "3"], {"extra_length": 3})],
    "min_length": [(["--min_length", "2"], {"min_length": 2})],
    "no_repeat_ngram": [(["--no_repeat_ngram", "2"], {"no_repeat_ngram": 2})],
    "prefixes": [(["--prefix_file", FILE], {"prefixes": []})],
    "terms": [(["--terms", FILE], {"terms": {"one": "eins"}})],
    "placeholders": [(["--placeholders", "tags"], {"placeholders": "tags"})],
    "unknown": [
        (["--unknown", value], {"unknown": value})
        for value in ("allow", "forbid", "replace")
    ],
    "split_sentences": [(["--split_sentences"], {"split_sentences": True})],
    "nbest": [(["--nbest", str(n)], {"nbest": n}) for n in (1, 2)],
    "return_scores": [(["--scores"], {"return_scores": True})],
    "alignment": [(["--alignment"], {"alignment": True})],
    "xla": [(["--xla"], {"xla": True})],
    "no_xla": [(["--no-xla"], {"xla": False})],
    "tensor2tensor_rules": [(["--tensor2tensor_rules"], {"tensor2tensor_rules": True})],
    "sampling": [(["--sampling"], {"sampling": Sampling()})],
}
# Pairs without a meaning, written from the descriptions of the options.
EXCLUDED = {
    "sampling": {"beam_size", "alpha", "tensor2tensor_rules", "terms", "xla"},
    "tensor2tensor_rules": {
        *("min_length", "no_repeat_ngram", "prefixes", "unknown", "terms", "xla"),
        "split_sentences",
    },
    "terms": {"prefixes", "min_length", "no_repeat_ngram", "xla"},
    "prefixes": {"placeholders", "split_sentences", "xla"},
    "split_sentences": {"nbest", "alignment"},
}


def verdict(function, *args, **kwargs):
    """Returns the message of an error with the names of Python; "" for no error."""
    try:
        function(*args, **kwargs)
    except (UserError, ValueError) as error:
        message = str(error).replace("--prefix_file", "prefixes").replace("--", "")
        return message.removesuffix(" (see help)")
    return ""


@pytest.mark.medium
@pytest.mark.usefixtures("fast_implementations")
def test_the_command_and_python_accept_the_same_pairs(trained, tmp_path):
    model = t2t_repro.load(trained.model_dir)
    file = tmp_path / "file"
    file.write_text("one\teins\n", encoding="utf-8")
    parser = translate._parser()
    pairs = 0
    for (one, some), (other, more) in combinations(SETTINGS.items(), 2):
        if {one, other} == {"xla", "no_xla"}:
            continue
        excluded = other in EXCLUDED.get(one, ()) or one in EXCLUDED.get(other, ())
        for (flags, values), (flags2, values2) in ((a, b) for a in some for b in more):
            pairs += 1
            words = [str(file) if word is FILE else word for word in flags + flags2]
            args = parser.parse_args(["--model_dir", str(trained.model_dir), *words])
            command = verdict(read_options, args, model.hparams)
            python = verdict(model.translate, [], **values, **values2)
            assert command == python, (words, command, python)
            assert bool(python) is excluded, (words, python)
            if excluded:
                assert "cannot be combined; give one of them" in python
                assert {one, other} <= {*python.replace(",", "").split()}
    assert pairs > 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nbest": 3}, "nbest 3 exceeds the beam size 2; give beam_size 3 or more"),
        ({"never": (3,), "unknown": "allow"}, "unknown and never cannot be combined"),
        ({"sampling": Sampling(), "word_penalty": 0.5}, "sampling and word_penalty"),
        ({"terms": [["a"]], "split_sentences": True}, "and a list of terms cannot"),
        ({"alignment": True, "line_breaks": True}, "a text with a line break and alig"),
    ],
)
def test_other_options_are_rejected(options, message):
    hparams = t2t_repro.hparams.HParams(beam_size=2)
    with pytest.raises(ValueError, match=message):
        TranslationOptions(**options).check(hparams)


def test_tensor2tensors_rules_are_for_its_own_search():
    hparams = t2t_repro.hparams.HParams(search="marian")
    with pytest.raises(ValueError, match="the model uses marian's search"):
        TranslationOptions(tensor2tensor_rules=True).check(hparams)
    with pytest.raises(ValueError, match="the model uses opennmt's search"):
        options = TranslationOptions(tensor2tensor_rules=True, algorithm="opennmt")
        options.check(t2t_repro.hparams.HParams())


def test_options_without_effect_are_not_in_effect():
    options = TranslationOptions(min_length=0, no_repeat_ngram=0, xla=False, alpha=0.0)
    assert options.given() == {"alpha"}
    options = TranslationOptions(terms={}, placeholders=Placeholders(["tags"]))
    assert options.given() == {"terms", "placeholders"}
