"""The type of a tensor, whatever backend Keras runs on."""

from typing import Any, TypeAlias

Tensor: TypeAlias = Any
