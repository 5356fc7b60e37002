"""Random model, small enough for thousands of requests, and its input texts."""

from __future__ import annotations

import numpy as np

from tests import tiny

NAME = "small"
VOCAB_SIZE = 300
BEAM_SIZE = 3
EXTRA_LENGTH = 3
random_model = tiny.random_model
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


def sentences(count: int, seed: int = 0) -> list[str]:
    """Returns sentences of 1 to 12 random number words."""
    generator = np.random.default_rng(seed)
    words = [en for en, _ in tiny.NUMBERS]
    return [
        " ".join(generator.choice(words, generator.integers(1, 13)))
        for _ in range(count)
    ]
