"""Fast matmuls of a few rows on a CPU.

A decoding step has one row per hypothesis. A matmul of few rows reads the matrix in
place, without repacking it, which is slow in two cases:

- With few rows (`most_few_rows`), one core reads the matrix, and reading takes most of
  the time. Two independent matmuls of half of the matrix run on two cores. The halves
  are views, not copies. A search that never has more rows needs only this form
  (`halve_weights`).
- With more rows and AVX2, the elements of a column conflict in the processor's cache if
  the length of a row is a multiple of 128 elements. A copy of the matrix with rows
  longer by one cache line avoids that. It is made once, before the first step. A
  large table is not copied, but placed on the left of the matmul, which can take 1.4
  times the time.

Matrices that are multiplied by the same rows are concatenated for one matmul.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import tensorflow as tf
from keras import ops

from t2t_repro.fast.flat_attention import flatten_tokens, unflatten_tokens
from t2t_repro.fast.thresholds import (
    MAX_COPIED_WEIGHTS,
    MIN_DIVIDED_WEIGHTS,
    most_few_rows,
)
from t2t_repro.fast.xla_kernels import matmul_transposed
from t2t_repro.layers.dense import Dense
from t2t_repro.layers.embedding import TokenEmbedding
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.functional import Tensor, linear, tied_logits
from t2t_repro.system.processor import uses_avx512

# One cache line, in float32 elements.
_CACHE_LINE = 16

# With AVX2, rows whose length is a multiple of this number of float32 elements (8 cache
# lines) are padded: their columns would use at most 8 of the 64 sets of a first-level
# cache.
_CONFLICT_STRIDE = 128

_Matmul = Callable[[Tensor], Tensor]
_Group = tuple[Dense | TokenEmbedding, ...]


@dataclass(frozen=True)
class SharedMatmul:
    """Replaces the `matmul` of a layer with its columns of a shared matmul.

    Attributes:
        whole: Maps float (rows, channels) to (rows, units of all layers), or with
            `columns=` to some of these units.
        columns: The layer's columns; None if it is the only layer.
    """

    whole: Callable[..., Tensor]
    columns: slice | None = None

    def __call__(
        self, x: Tensor, weights: object = None, bias: object = None
    ) -> Tensor:
        """Maps float (..., channels) to (..., units); ignores the layer's weights."""
        rows = self.whole(flatten_tokens(x), columns=self.columns)
        return unflatten_tokens(x, rows)


class StepMatmuls:
    """Computes the matmuls of a decoding step, some of them with prepacked weights.

    Args:
        prepacked: Matmuls with prepacked weights, without biases, by layers.
    """

    def __init__(self, prepacked: Mapping[_Group, _Matmul] | None = None) -> None:
        self._prepacked = prepacked or {}

    def __call__(self, x: Tensor, *layers: Dense) -> Tensor:
        """Applies one or several layers to the same rows.

        Args:
            x: float (rows, channels).
            *layers: The layers; either all have a bias or none.

        Returns:
            float (rows, units), the concatenated outputs of the layers.
        """
        matmul = self._prepacked.get(layers)
        if matmul is None:
            shared = layers[0].matmul
            if isinstance(shared, SharedMatmul):
                return shared.whole(x)
            if len(layers) == 1:
                return layers[0](x)
            if not all(map(is_plain, layers)):
                return ops.concatenate([layer(x) for layer in layers], 1)
            # Concatenating the kernels at every call would take longer.
            matmul = _make_column_matmul(
                [ops.cast(each.kernel, x.dtype) for each in layers]
            )
        y = matmul(x)
        if not layers[0].use_bias:
            return y
        biases = [ops.cast(each.bias, x.dtype) for each in layers]
        return ops.add(y, biases[0] if len(biases) == 1 else ops.concatenate(biases))

    def feed_forward(self, network: FeedForward, x: Tensor) -> Tensor:
        """Applies a feed-forward network to float (rows, d_model)."""
        if (network.hidden,) not in self._prepacked:
            return network(x)
        hidden = network.activate(self(x, network.hidden))
        return self(hidden, network.output_projection)

    def logits(self, x: Tensor, table: TokenEmbedding) -> Tensor:
        """Computes the logits of float (rows, d_model): (rows, V)."""
        matmul = self._prepacked.get((table,))
        if matmul is None:
            return table(x, reverse=True)
        y = matmul(ops.cast(x, table.compute_dtype))
        return y if table.bias is None else ops.add(y, ops.cast(table.bias, y.dtype))


def prepack(
    groups: Sequence[_Group],
    rows: Tensor,
    dtype: str,
    copies: Sequence[Tensor] = (),
) -> StepMatmuls:
    """Prepacks weights for the steps of a search on a CPU, before the first step.

    Args:
        groups: Layers that share a matmul, because they have the same input. A
            `TokenEmbedding` is the only layer of its group. Groups with a layer that is
            not plain (see `is_plain`) are skipped.
        rows: int32 (), the largest number of rows in a step.
        dtype: Dtype of the matmuls.
        copies: The results of `pad_weights`; default: they are computed.
    """
    groups = _select_plain(groups)
    if not groups:
        return StepMatmuls()
    both = _collect_weights(groups, dtype)
    matmuls = [
        (_make_table_matmul if is_table else _make_kernel_matmul)(each, copy)
        for (each, is_table), copy in zip(
            both, copies or _pad_if_many_rows(both, rows), strict=True
        )
    ]
    return StepMatmuls(dict(zip(groups, matmuls, strict=True)))


def pad_weights(groups: Sequence[_Group], rows: Tensor, dtype: str) -> list[Tensor]:
    """Copies the weights for `prepack`, which has the same arguments.

    Several searches can share the copies as long as the weights do not change.
    """
    groups = _select_plain(groups)
    return _pad_if_many_rows(_collect_weights(groups, dtype), rows) if groups else []


def needs_copies(rows: Tensor | int) -> Tensor | bool:
    """Returns whether matmuls of this number of rows use copies of the weights."""
    return rows > most_few_rows()


def _collect_weights(groups: Sequence[_Group], dtype: str) -> list[tuple[Tensor, bool]]:
    """Returns the weights of each group, and whether they are a transposed table."""
    return [
        (_weights(group, dtype), isinstance(group[0], TokenEmbedding))
        for group in groups
    ]


def _pad_if_many_rows(both: list[tuple[Tensor, bool]], rows: Tensor) -> list[Tensor]:
    """Returns the copies of `_collect_weights` that suit the number of rows."""

    def transpose(table: Tensor) -> Tensor:
        if _is_on_the_left(table):
            return ops.transpose(table[:0])
        return _pad_rows(ops.transpose(table))

    def copies() -> list[Tensor]:
        return [
            transpose(each) if is_table else _pad_rows(each) for each, is_table in both
        ]

    def no_copies() -> list[Tensor]:
        # With few rows, a large table is read in halves, without a copy.
        return [
            ops.transpose(each if _is_small(each) else each[:0]) if is_table else each
            for each, is_table in both
        ]

    many = needs_copies(ops.convert_to_tensor(rows))
    return list(ops.cond(many, copies, no_copies))


def halve_weights(groups: Sequence[_Group], dtype: str) -> StepMatmuls:
    """Divides large weights in halves for a search that never has many rows.

    The result equals that of `prepack` where `needs_copies` is false, but the graph has
    a sixth fewer operations and is optimized in two thirds of the time.

    Args:
        groups: Layers that share a matmul, as for `prepack`.
        dtype: Dtype of the matmuls.
    """

    def matmul(weights: Tensor, is_table: bool) -> _Matmul:
        if _is_small(weights):
            return _make_column_matmul(
                [ops.transpose(weights) if is_table else weights]
            )
        return (
            _make_halved_table_matmul(weights)
            if is_table
            else _make_halved_kernel_matmul(weights)
        )

    groups = _select_plain(groups)
    both = _collect_weights(groups, dtype)
    return StepMatmuls({g: matmul(*each) for g, each in zip(groups, both, strict=True)})


def transpose_weights(groups: Sequence[_Group], dtype: str) -> StepMatmuls:
    """Copies the current weights, transposed, for small matmuls that XLA compiles.

    `matmul_transposed` states why the copies are transposed.

    Args:
        groups: Layers that share a matmul, as for `prepack`.
        dtype: Dtype of the matmuls.
    """
    prepacked = {}
    for group in _select_plain(groups):
        weights = _weights(group, dtype)
        is_table = isinstance(group[0], TokenEmbedding)
        matrix = weights if is_table else ops.transpose(weights)
        prepacked[group] = partial(matmul_transposed, matrix=matrix)
    return StepMatmuls(prepacked)


def first_rows(groups: Sequence[_Group]) -> Tensor:
    """Returns the first two rows of all weights that `transpose_weights` copies.

    They show whether the weights have changed: training changes all rows of kernels.
    The result is float (elements,).
    """
    layers = [layer for group in _select_plain(groups) for layer in group]
    weights = [x.table if isinstance(x, TokenEmbedding) else x.kernel for x in layers]
    return ops.concatenate([ops.ravel(each[:2]) for each in weights] or [ops.zeros(0)])


def _select_plain(groups: Sequence[_Group]) -> list[_Group]:
    """Returns the groups whose layers are all plain; see `is_plain`."""
    return [group for group in groups if all(map(is_plain, group))]


def is_plain(layer: Dense | TokenEmbedding) -> bool:
    """Returns whether a layer multiplies by a float matrix that is one variable.

    This is false after quantization, by this package or by Keras, and with LoRA.
    """
    replaced = layer.matmul not in (linear, tied_logits)
    return not (replaced or layer.quantization_mode or layer.lora_enabled)


def _weights(group: _Group, dtype: str) -> Tensor:
    """Returns the concatenated kernels, (channels, units), or the table, (V, d)."""
    weights = [
        ops.cast(each.table if isinstance(each, TokenEmbedding) else each.kernel, dtype)
        for each in group
    ]
    return weights[0] if len(weights) == 1 else ops.concatenate(weights, 1)


def _pad_rows(matrix: Tensor) -> Tensor:
    """Pads rows of float (channels, units) by a cache line, if columns conflict."""
    if not _has_conflicts(matrix.shape[1]):
        return matrix
    return ops.pad(matrix, [[0, 0], [0, _CACHE_LINE]])


def _make_kernel_matmul(kernel: Tensor, padded: Tensor) -> _Matmul:
    """Returns the matmul with a kernel, float (channels, units).

    `padded` is its copy with padded rows, from `prepack`.
    """
    whole = _make_padded_matmul(padded, kernel.shape[1])
    return _matmul_for_any_rows(kernel, _make_halved_kernel_matmul(kernel), whole)


def _make_halved_kernel_matmul(kernel: Tensor) -> _Matmul:
    halves = _halves(kernel, 0)

    def matmul(x: Tensor) -> Tensor:
        first, second = map(ops.matmul, _halves(x, 1), halves)
        return first + second

    return matmul


def _make_table_matmul(table: Tensor, padded: Tensor) -> _Matmul:
    """Returns the matmul with a transposed table, float (units, channels).

    `padded` is its transposed copy with padded rows, from `prepack`.
    """

    def multiply_from_left(x: Tensor) -> Tensor:
        return ops.transpose(ops.matmul(table, ops.transpose(x)))

    whole = _make_padded_matmul(padded, table.shape[0])
    if _is_on_the_left(table):
        whole = multiply_from_left
    return _matmul_for_any_rows(table, _make_halved_table_matmul(table), whole)


def _make_halved_table_matmul(table: Tensor) -> _Matmul:
    halves = _halves(table, 0)

    def matmul(x: Tensor) -> Tensor:
        products = [ops.matmul(x, ops.transpose(half)) for half in halves]
        return ops.concatenate(products, 1)

    return matmul


def _halves(x: Tensor, axis: int) -> list[Tensor]:
    """Divides a tensor in two along an axis.

    `ops.split` would compute the sizes in the graph, with 20 operations.
    """
    middle = x.shape[axis] // 2
    return list(tf.split(x, [middle, x.shape[axis] - middle], axis))


def _make_column_matmul(matrices: list[Tensor]) -> _Matmul:
    """Returns the matmul with the concatenation of matrices along their columns."""

    def matmul(x: Tensor) -> Tensor:
        products = [ops.matmul(x, matrix) for matrix in matrices]
        return products[0] if len(matrices) == 1 else ops.concatenate(products, 1)

    return matmul


def _make_padded_matmul(padded: Tensor, units: int) -> _Matmul:
    """Returns the matmul with a copy from `prepack`, with or without padded rows."""

    def matmul(x: Tensor) -> Tensor:
        y = ops.matmul(x, padded)
        if _has_conflicts(units):
            y = y[:, :units]
        # The width of `padded` is unknown statically after ops.cond.
        return ops.reshape(y, (-1, units))

    return matmul


def _matmul_for_any_rows(matrix: Tensor, divided: _Matmul, whole: _Matmul) -> _Matmul:
    """Returns a matmul that calls `divided` if x has few rows and W is large."""

    def matmul(x: Tensor) -> Tensor:
        few = ops.shape(x)[0] <= most_few_rows()
        return ops.cond(few, lambda: divided(x), lambda: whole(x))

    return whole if _is_small(matrix) else matmul


def _has_conflicts(units: int) -> bool:
    """Returns whether the elements of a column conflict in the processor's cache.

    With AVX-512, oneDNN repacks the matrix, and padded rows make no difference.
    """
    return units % _CONFLICT_STRIDE == 0 and not uses_avx512()


def _is_on_the_left(table: Tensor) -> bool:
    """Returns whether a matmul of many rows reads a table, (units, channels), in place.

    With AVX-512, every table is copied, which makes large ones 1.4 times as fast.
    """
    units, channels = table.shape
    return bool(units * channels > MAX_COPIED_WEIGHTS and not uses_avx512())


def _is_small(matrix: Tensor) -> bool:
    rows, columns = matrix.shape
    return bool(rows * columns < MIN_DIVIDED_WEIGHTS)
