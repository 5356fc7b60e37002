"""Random model, small enough for thousands of requests, and its input texts."""

from __future__ import annotations

import numpy as np

from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer
from t2t_repro.runs.model_dir import build_model
from tests import tiny

NAME = "small"
VOCAB_SIZE = 300
BEAM_SIZE = 3
EXTRA_LENGTH = 3
MAX_INPUT_LENGTH = 24

# Texts that attackers or faulty clients could send.
HOSTILE = {
    "empty": b"",
    "blank": b"  \t \xc2\xa0 ",
    "long": b"four " * 20_000,
    "long word": b"x" * 100_000,
    "control": bytes(range(1, 32)),
    "right to left": "‮אחת שתיים שלוש‏ ثلاثة".encode(),
    "surrogate": b"one \xed\xa0\x80 two \xed\xbf\xbf",
    "emoji": "one 👩‍👩‍👧 🇩🇪 two".encode(),
    "nul": b"one\x00two\x00",
    "only nul": b"\x00",
    "invalid": b"one \xff\xfe\xc3 \x80\x80",
    "only invalid": b"\x80\xbf\x80",
    "cut short": "fünf".encode()[:2],
    "sql": b"'; DROP TABLE sentences; --",
    "shell": b"$(rm -rf /) `reboot` | cat > /dev/null; ${IFS}",
    "specials": b"<pad> </s> <unk> <s> <EOS> <pad>_ <EOS>_ <0x0A> \xe2\x96\x81one",
    "template": b"{{7*7}} %s %n {0} \\0 \\u0000 \\1;",
    "line breaks": "one\ntwo\r\nthree\u2028four\x85five".encode(),
}


def random_model(
    vocab_size: int,
    spread: float = 0.3,
    target_vocab_size: int | None = None,
    **settings: object,
) -> Transformer:
    """Returns a model with random weights, which are the same in every call.

    The weights are large enough that most sentences have different translations.

    Args:
        vocab_size: Number of tokens in the (source) vocabulary, V.
        spread: Standard deviation of the noise that is added to the initial weights.
        target_vocab_size: V of the target vocabulary; None for a shared vocabulary.
        **settings: Hyper-parameters that replace the defaults.
    """
    sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1, "seed": 1}
    hparams = HParams(**{**sizes, **settings})
    model = build_model(hparams, vocab_size, target_vocab_size)
    generator = np.random.default_rng(1)
    for variable in model.trainable_variables:
        variable.assign(variable + generator.normal(0, spread, variable.shape))
    return model


def sentences(count: int, seed: int = 0) -> list[str]:
    """Returns sentences of 1 to 12 random number words."""
    generator = np.random.default_rng(seed)
    words = [en for en, _ in tiny.NUMBERS]
    return [
        " ".join(generator.choice(words, generator.integers(1, 13)))
        for _ in range(count)
    ]
