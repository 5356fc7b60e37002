"""The type of a tensor, whatever backend Keras runs on."""

from typing import Any, TypeAlias

Tensor: TypeAlias = Any

Shape: TypeAlias = tuple[Tensor | int, Tensor | int]
"""Sentences and the positions of each, int () each: (batch, length)."""
