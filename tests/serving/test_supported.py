"""Every export rejects the hyper-parameters that it cannot represent."""

import dataclasses

import pytest

from t2t_repro.hparams import HParams
from t2t_repro.hparams.settings import AUTO, field_types, setting
from t2t_repro.hparams.supported import TRAINING_ONLY
from t2t_repro.serving.exports import FORMATS
from t2t_repro.system.errors import UserError

BY_KIND = {"ids" if each.takes_ids else each.name: each for each in FORMATS}
SUBJECTS = {
    "saved_model": ("a SavedModel", "use python -m t2t_repro.translate"),
    "ids": ("a SavedModel", "use python -m t2t_repro.translate"),
    "ctranslate2": ("CTranslate2", "export a saved_model"),
    "keras_hub": ("a keras-hub preset", "use python -m t2t_repro.translate"),
    "litert": ("the LiteRT export", "export a saved_model"),
    "live_page": (
        "the live page",
        "use visualize --text without --live for a single sentence",
    ),
    "transformers": ("the Transformers export", "export a saved_model"),
    "marian": (
        "the Marian export",
        "export a saved_model, or import the model with --positions marian",
    ),
}
# Values that a format requires instead of defaults.
REQUIRED = {
    "tokenizer": "marian",
    "search": "marian",
    "attention_bias": True,
    "softmax_bias": True,
    "target_space_embedding": False,
    "norm_epsilon": 1e-9,
}
REQUIRED = {"transformers": REQUIRED, "marian": REQUIRED}
# Values that a hyper-parameter needs if it is not its default.
NEEDED = {"share_vocab": {"share_embeddings": False}}
POSITIONS = "sinusoid, sinusoid_paper, sinusoid_halves, learned, none"
# Refused by both formats of Marian's models.
_OTHER_THAN_MARIAN = {
    "tokenizer=sentencepiece": "marian",
    "tokenizer=wordpiece": "marian",
    "search=t2t": "marian, transformers",
    "search=opennmt": "marian, transformers",
    "attention_bias=False": "True",
    "softmax_bias=False": "True",
    "target_space_embedding=True": "False",
    "d_k=48": "None, 64",
    "d_v=48": "None, 64",
    "max_relative_position=4": "0",
    "self_attention_radius=4": "0",
    "start_symbol=4": "0",
    "source_end=False": "True",
    "share_vocab=False": "True",
    "vocab_divisor=2": "1",
    "target_space_id=4": "0",
}
# Unsupported values among those of `other_values`, and the values that each message
# names. The default head width is 512 / 8.
REFUSED = {
    "saved_model": {},
    "ids": {},
    "ctranslate2": {
        "max_relative_position=4": "0",
        "self_attention_radius=4": "0",
        "d_k=48": "64",
        "d_v=48": "64",
    },
    "keras_hub": {},
    "litert": {
        "max_relative_position=4": "0",
        "self_attention_radius=4": "0",
        "search=transformers": "t2t, marian",
        "search=opennmt": "t2t, marian",
    },
    "live_page": {
        "max_relative_position=4": "0",
        "self_attention_radius=4": "0",
        "search=opennmt": "t2t, marian, transformers",
        "position=sinusoid_from_one": POSITIONS,
    },
    "transformers": _OTHER_THAN_MARIAN
    | {
        "norm=pre": "post",
        "norm_epsilon=5e-07": "1e-05, 1e-09",
        "word_penalty=0.2": "0.0",
        **{
            f"position={other}": "sinusoid, sinusoid_halves"
            for other in ("sinusoid_paper", "sinusoid_from_one", "learned", "none")
        },
    },
    "marian": _OTHER_THAN_MARIAN
    | {
        "norm_epsilon=5e-07": "1e-09",
        "scale_embeddings=False": "True",
        **{
            f"position={other}": "sinusoid, none"
            for other in (
                *("sinusoid_paper", "sinusoid_halves", "sinusoid_from_one", "learned"),
            )
        },
    },
}


def other_values(name, default, plain):
    """Returns valid values of a hyper-parameter that are not `plain`."""
    kind, _, rule = field_types(HParams)[name]
    if rule.choices:
        return [value for value in rule.choices if value != plain]
    if default == AUTO:
        return [rule.plain]
    if kind is bool:
        return [not plain]
    if kind is float:
        return [max((default or 0.4) / 2, rule.minimum or 0)]
    if kind is int:
        return [48] if default is None else [2 * default or 4]
    return ["files"]


@pytest.mark.parametrize("kind", BY_KIND)
def test_refuses_exactly_the_unsupported_values_of_all_hyper_parameters(kind):
    supported, messages = BY_KIND[kind].supported, {}
    required = REQUIRED.get(kind, {})
    supported.check(HParams(**required))
    for field in dataclasses.fields(HParams):
        plain = required.get(field.name, field.default)
        for value in other_values(field.name, field.default, plain):
            needed = NEEDED.get(field.name, {})
            hparams = HParams(**required | needed | {field.name: value})
            assert getattr(hparams, field.name) != plain
            try:
                supported.check(hparams)
            except UserError as error:
                messages[f"{field.name}={value}"] = str(error)
    subject, remedy = SUBJECTS[kind]
    assert messages == {
        setting: f"{setting}: {subject} supports only {values}; {remedy}"
        for setting, values in REFUSED[kind].items()
    }


@pytest.mark.parametrize("kind", BY_KIND)
def test_refuses_a_new_hyper_parameter_until_it_is_listed(kind):
    supported, new = BY_KIND[kind].supported, ("new", int, setting(0, "New.", "test"))
    more = dataclasses.make_dataclass(
        "More",
        [new],
        bases=(HParams,),
        frozen=True,
        namespace={"__post_init__": lambda _: None},
    )
    required = REQUIRED.get(kind, {})
    supported.check(more(**required))
    with pytest.raises(UserError, match=r"^new=1: .* supports only 0; "):
        supported.check(more(**required, new=1))
    listed = dataclasses.replace(supported, every_value=(*supported.every_value, "new"))
    listed.check(more(**required, new=1))


@pytest.mark.parametrize("kind", BY_KIND)
def test_lists_each_hyper_parameter_once(kind):
    supported = BY_KIND[kind].supported
    listed = [*TRAINING_ONLY, *supported.every_value, *supported.some_values]
    listed += supported.required
    assert len(listed) == len(set(listed))
    assert set(listed) <= {field.name for field in dataclasses.fields(HParams)}


def test_ctranslate2_supports_the_default_head_width_as_a_number():
    BY_KIND["ctranslate2"].supported.check(HParams(d_k=64, d_v=64))
    with pytest.raises(UserError, match="d_v=64: CTranslate2 supports only 32; "):
        BY_KIND["ctranslate2"].supported.check(HParams(num_heads=16, d_v=64))
