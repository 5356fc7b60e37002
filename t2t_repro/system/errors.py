"""Exception for mistakes of the user, and numbers in its messages."""

from typing import Any


class UserError(Exception):
    """Mistake that the user can correct.

    The message is one line with the file, line or flag and a remedy. Commands print it
    without a traceback and exit with status 2.
    """


def counted(number: int, noun: str) -> str:
    """Formats a number with its noun: "1 line", "2,000 lines"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


class NotQuantizable:
    """Base class of layers that reject Keras' quantization.

    Raises:
        ValueError: The dtype policy is one for quantized layers.
    """

    dtype_policy: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if getattr(self.dtype_policy, "quantization_mode", None):
            NotQuantizable.quantize(self)  # Keras has wrapped `self.quantize`.

    def quantize(self, *_: object, **__: object) -> None:
        """Raises ValueError, because Keras would skip the layer."""
        raise ValueError(
            f"{type(self).__name__} does not support quantize; load a trained model "
            'with t2t_repro.load(..., precision="int8")'
        )
