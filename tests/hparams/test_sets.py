"""Named sets: values, overrides, files and rejected input."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from t2t_repro import hparams
from t2t_repro.hparams import sets
from t2t_repro.interop.source import FINE_TUNING
from t2t_repro.system.errors import UserError
from tests.hparams import resolve_sets

CONFIGS = Path(__file__).resolve().parents[2] / "configs"

# "Attention Is All You Need", table 3 and sections 5 and 6.1.
PAPER_BASE = {
    "d_model": 512,
    "d_ff": 2048,
    "num_heads": 8,
    "key_size": 64,
    "value_size": 64,
    "num_layers": 6,
    "decoder_layers": 6,
    "norm": "post",
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "ffn_dropout": 0.0,
    "label_smoothing": 0.1,
    "adam_beta1": 0.9,
    "adam_beta2": 0.98,
    "adam_epsilon": 1e-9,
    "learning_rate_schedule": "paper",
    "learning_rate_scale": 1.0,
    "warmup_steps": 4000,
    "tokens_per_batch": 25_000,
    "vocab_size": 37_000,
    "tokenizer": "sentencepiece",
    "problem": "translate_ende_wmt14",
    "train_steps": 100_000,
    "checkpoint_minutes": 10.0,
    "average_last": 5,
    "beam_size": 4,
    "alpha": 0.6,
    "decode_extra_length": 50,
}
PAPER_BIG = PAPER_BASE | {
    "d_model": 1024,
    "d_ff": 4096,
    "num_heads": 16,
    "dropout": 0.3,
    "train_steps": 300_000,
    "average_last": 20,
}
ENFR = {
    "problem": "translate_enfr_wmt14",
    "tokenizer": "wordpiece",
    "vocab_size": 32_000,
}
# The paper's changes to base for parsing. The size of the feed-forward layers and the
# number of heads "remained unchanged".
PARSING = {
    "d_model": 1024,
    "d_ff": 2048,
    "num_heads": 8,
    "num_layers": 4,
    "decoder_layers": 4,
    "norm": "post",
    "max_length": 512,
    "beam_size": 21,
    "alpha": 0.3,
    "decode_extra_length": 300,
}
# tensor2tensor 1.15.7, models/transformer.py: transformer_base_v3, transformer_big.
T2T_BASE = {
    "problem": "translate_ende_wmt_t2t",
    "d_model": 512,
    "norm": "pre",
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "ffn_dropout": 0.1,
    "adam_beta2": 0.997,
    "learning_rate_schedule": "t2t",
    "learning_rate_scale": 2.0,
    "warmup_steps": 8000,
}
EXPECTED = {
    "base": PAPER_BASE,
    "big": PAPER_BIG,
    "base_enfr": PAPER_BASE | ENFR,
    "big_enfr": PAPER_BIG | ENFR | {"dropout": 0.1},
    "t2t_base": T2T_BASE,
    "t2t_big": T2T_BASE | {"d_model": 1024, "d_ff": 4096, "dropout": 0.3},
    # Used in the README's comparison with tensor2tensor.
    "multi30k": {
        "problem": "files",
        "d_model": 256,
        "d_ff": 1024,
        "num_heads": 4,
        "num_layers": 3,
        "vocab_size": 6000,
        "warmup_steps": 1000,
        "dropout": 0.1,
        "batching": "sorted",
        "tokens_per_batch": 4096,
        "train_steps": 2500,
        "checkpoint_steps": 250,
        "average_last": 5,
    },
    # "Attention Is All You Need", section 6.3. Dropout and learning rate, which it does
    # not state, are from tensor2tensor's transformer_parsing_base and _big.
    "parsing": PARSING
    | {
        "problem": "parse_wsj",
        "vocab_size": 16_000,
        "dropout": 0.2,
        "attention_dropout": 0.2,
        "warmup_steps": 16_000,
    },
    "parsing_semi": PARSING
    | {
        "problem": "parse_wsj_semi",
        "vocab_size": 32_000,
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "warmup_steps": 4000,
    },
    "parsing_small": {"problem": "parse_wsj"},
    "tiny": {"problem": "translate_ende_numbers"},
    "small": {"problem": "files"},
    # Like base except for the decoder.
    "student": PAPER_BASE | {"decoder_layers": 1},
}

# "Attention Is All You Need", table 3. Blank cells have the value of base.
TABLE_3 = {
    "a_h1": {"num_heads": 1, "key_size": 512, "value_size": 512},
    "a_h4": {"num_heads": 4, "key_size": 128, "value_size": 128},
    "a_h16": {"num_heads": 16, "key_size": 32, "value_size": 32},
    "a_h32": {"num_heads": 32, "key_size": 16, "value_size": 16},
    "b_dk16": {"key_size": 16},
    "b_dk32": {"key_size": 32},
    "c_n2": {"num_layers": 2, "decoder_layers": 2},
    "c_n4": {"num_layers": 4, "decoder_layers": 4},
    "c_n8": {"num_layers": 8, "decoder_layers": 8},
    "c_d256": {"d_model": 256, "key_size": 32, "value_size": 32},
    "c_d1024": {"d_model": 1024, "key_size": 128, "value_size": 128},
    "c_ff1024": {"d_ff": 1024},
    "c_ff4096": {"d_ff": 4096},
    "d_dropout0": {"dropout": 0.0},
    "d_dropout2": {"dropout": 0.2},
    "d_smoothing0": {"label_smoothing": 0.0},
    "d_smoothing2": {"label_smoothing": 0.2},
    "e_learned": {"position": "learned"},
}
# Only the training differs from the defaults; the rate is that of imported models.
EXPECTED["adapt"] = (
    PAPER_BASE
    | FINE_TUNING
    | {
        "problem": "files",
        "clip_norm": 5.0,
        "tokens_per_batch": 4096,
        "train_steps": 2000,
        "checkpoint_steps": 100,
        "checkpoint_minutes": 0.0,
        "eval_steps": 100,
    }
)
EXPECTED |= {f"table3_{row}": PAPER_BASE | own for row, own in TABLE_3.items()}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_named_set_has_the_values_of_its_source(name):
    values = hparams.load(name)
    expected = EXPECTED[name]
    assert {key: getattr(values, key) for key in expected} == expected


def test_every_file_in_configs_is_a_tested_set():
    assert hparams.names() == sorted(EXPECTED)
    assert sorted(path.stem for path in CONFIGS.iterdir()) == sorted(EXPECTED)


def test_resolved_sets_match_the_reviewed_values():
    reviewed = yaml.safe_load(resolve_sets.RESOLVED.read_text(encoding="utf-8"))
    current = yaml.safe_load(resolve_sets.resolved())
    assert current == reviewed, (
        "if the change is intended, run python -m tests.hparams.resolve_sets and "
        "commit the result"
    )


def test_defaults_are_the_base_set():
    assert hparams.HParams() == hparams.load("base")


def test_overrides_change_only_their_fields():
    values = hparams.load("big, warmup_steps=8000 ,dropout=0,d_k=96,num_layers=2")
    expected = hparams.load("big").replace(
        warmup_steps=8000, dropout=0.0, d_k=96, num_layers=2
    )
    assert values == expected
    assert (values.key_size, values.value_size, values.decoder_layers) == (96, 64, 2)
    assert hparams.load("big,d_k=96,share_embeddings=false").share_embeddings is False
    assert hparams.load("multi30k,d_k=none").d_k is None


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("bgi", "no hyper-parameter set is called 'bgi'; did you mean 'big'?"),
        ("", "choose from adapt, base, base_enfr, big"),
        ("big,warmup_step=1", "'warmup_step'; did you mean 'warmup_steps'?"),
        ("big,hidden_size=1", "unknown hyper-parameter 'hidden_size'"),
        ("big,warmup_steps", "'warmup_steps' is not of the form key=value"),
        ("big,seed=1,seed=2", "seed is given twice"),
        ("big,d_model=wide", "d_model must be a whole number, not 'wide'"),
        ("big,d_model=512.0", "d_model must be a whole number, not '512.0'"),
        ("big,share_embeddings=1", "share_embeddings must be true or false, not '1'"),
        ("big,warmup_steps=none", "warmup_steps must be a whole number, not 'none'"),
        ("missing/set.yaml", "missing/set.yaml does not exist"),
    ],
)
def test_rejects_an_invalid_specification(spec, words):
    with pytest.raises(UserError) as raised:
        hparams.load(spec)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_user_file_can_extend_a_named_set(tmp_path):
    path = write(tmp_path / "a, b.yaml", "base: base\nadam_epsilon: 1e-8\nd_k: 32\n")
    values = hparams.load(f"{path},seed=7")
    assert values == hparams.load("base").replace(adam_epsilon=1e-8, d_k=32, seed=7)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("base: big\n", "only one level is allowed"),
        ("base: bsae\n", "did you mean 'base'?"),
        ("base: 3\n", "base: no hyper-parameter set is called '3'"),
        ("d_modle: 512\n", "'d_modle'; did you mean 'd_model'?"),
        ("d_model: '512'\n", "d_model must be a whole number, not '512' (str)"),
        ("d_model: true\n", "d_model must be a whole number, not True (bool)"),
        ("d_model: 512.0\n", "d_model must be a whole number, not 512.0 (float)"),
        ("d_model: null\n", "d_model must be a whole number, not None"),
        ("dropout: high\n", "dropout must be a number, not 'high' (str)"),
        ("dropout: 1.0\n", "dropout=1.0 must be less than 1"),
        ("dropout: -0.1\n", "dropout=-0.1 must be at least 0"),
        ("norm: both\n", "norm='both' must be one of post, pre"),
        ("seed: 1\nseed: 2\n", ":2: not valid YAML: seed is given twice"),
        ("seed: [\n", "not valid YAML"),
        ("just words\n", "must contain lines of the form 'key: value'"),
    ],
)
def test_rejects_an_invalid_file_by_path(text, words, tmp_path):
    path = write(tmp_path / "mine.yaml", text)
    with pytest.raises(UserError) as raised:
        hparams.load(path)
    assert words in str(raised.value)
    assert str(raised.value).startswith(path)
    assert "\n" not in str(raised.value)


def test_saved_set_is_plain_yaml_with_descriptions(tmp_path):
    text = hparams.load("big").to_yaml()
    assert yaml.safe_load(text) == hparams.load("big").to_dict()
    comment = "# Number of attention heads. (paper table 3, base)\n"
    assert f"{comment}num_heads: 16\n" in text


def test_set_saved_before_a_key_existed_gets_its_default(tmp_path):
    path = write(tmp_path / "hparams.yaml", "d_model: 256\n")
    before = hparams.load("base").replace(d_model=256)
    # A set saved before "auto" existed gets the CPU defaults of that time.
    assert hparams.read(path) == before.replace(
        max_shapes=48,
        max_tokens_per_device=4096,
        rows_multiple=1,
        precision="float32",
        xla=False,
    )
    assert hparams.load(path) == before


def test_installed_package_uses_its_own_sets(tmp_path, monkeypatch):
    package = tmp_path / "t2t_repro"
    (package / "configs").mkdir(parents=True)
    (package / "configs" / "mine.yaml").write_text("seed: 5\n", encoding="utf-8")
    monkeypatch.setattr(sets, "__file__", str(package / "hparams" / "sets.py"))
    assert hparams.names() == ["mine"]
    assert hparams.load("mine").seed == 5
