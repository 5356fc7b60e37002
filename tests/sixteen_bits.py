"""Parameters and marks of tests with 16-bit matmuls."""

from typing import Any

import pytest

from t2t_repro.models.precision import unsupported_reason


def needs(precision: str) -> pytest.MarkDecorator:
    """Skips a test where TensorFlow would crash in matmuls of this precision."""
    reason = unsupported_reason(precision)
    return pytest.mark.skipif(reason is not None, reason=f"{reason}")


def both(prefix: str = "") -> list[Any]:
    """Returns a parameter for each 16-bit precision, such as "mixed_bfloat16"."""
    names = ("bfloat16", "float16")
    return [pytest.param(prefix + name, marks=needs(name)) for name in names]
