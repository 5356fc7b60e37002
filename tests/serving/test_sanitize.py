"""Tests of the validation of requests."""

from t2t_repro.serving.sanitize import is_blank


def test_blank_characters_are_those_of_isspace():
    characters = [chr(n) for n in range(0x3100) if not 0xD800 <= n < 0xE000]
    blank = is_blank(characters).numpy()
    assert [c for c, is_one in zip(characters, blank, strict=True) if is_one] == [
        c for c in characters if c.isspace()
    ]
    assert is_blank(["", " \u3000", " x "]).numpy().tolist() == [True, True, False]
