"""Import and export of the encoder and decoder variables by other programs' names."""

import re
from collections.abc import Iterator

import numpy as np

from t2t_repro.hparams import HParams
from t2t_repro.interop.formats.array_store import Arrays, ArrayStore
from t2t_repro.interop.formats.text import own_tables

_NAMES = own_tables(__file__)
_OURS = re.compile(
    r"(encoder|decoder)/(?:layer_(\d+)/)?(?:(self|cross)_attention[/_])?(.+)/(\w+)"
)


def stack_name(program: str, ours: str, norm: str) -> str:
    """Returns another program's name of an encoder or decoder variable.

    Args:
        program: Key of stack_weights.yaml.
        ours: Name of the variable in this package.
        norm: Placement of the layer normalization, "pre" or "post".

    Raises:
        KeyError: The other program lacks this variable.
    """
    names = _NAMES[program]
    match = _OURS.fullmatch(ours)
    if match is None:
        raise KeyError(ours)
    side, index, attention, part, field = match.groups()
    fields = names["norm" if part.endswith("_norm") else "linear"]
    name: str = names["final_norm"]
    if index is not None:
        name = names["layer"] + names["parts"][part]
    return name.format(
        side=side,
        index=index,
        number=int(index or 0) + 1,
        attention=names["attention"].get(attention),
        place=names["place"][norm],
        field=fields[field == "bias"],
    )


def take_stacks(store: ArrayStore, program: str, hparams: HParams) -> Arrays:
    """Returns all variables of the encoder and decoder by this package's names.

    Args:
        store: Arrays of the other program.
        program: Key of stack_weights.yaml.
        hparams: Hyper-parameters, which determine the names and shapes.

    Returns:
        Arrays, float32; the shape of kernels is (inputs, outputs).

    Raises:
        UserError: A variable is missing or damaged, or has an unexpected shape.
    """
    names = _NAMES[program]
    arrays: Arrays = {}
    for ours, shape in _shapes(hparams):
        theirs = stack_name(program, ours, hparams.norm)
        if len(shape) == 1 and names["row_vectors"]:
            arrays[ours] = store.take(theirs, 1, *shape)[0]
        elif names["transposed"]:
            arrays[ours] = store.take(theirs, *reversed(shape)).T
        else:
            arrays[ours] = store.take(theirs, *shape)
    return arrays


def name_stacks(weights: Arrays, program: str, norm: str) -> Arrays:
    """Returns the encoder and decoder variables by another program's names.

    It is the inverse of `take_stacks`.

    Args:
        weights: This package's variables by name; others are ignored.
        program: Key of stack_weights.yaml.
        norm: Placement of the layer normalization, "pre" or "post".
    """
    names = _NAMES[program]
    arrays: Arrays = {}
    for ours, value in weights.items():
        if not ours.startswith(("encoder/", "decoder/")):
            continue
        if value.ndim == 1 and names["row_vectors"]:
            value = value[np.newaxis]
        elif names["transposed"]:
            value = value.T
        arrays[stack_name(program, ours, norm)] = np.ascontiguousarray(value)
    return arrays


def _shapes(hparams: HParams) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yields the name and shape of each variable of the encoder and decoder.

    Shapes are computed without building the model, because damaged hyper-parameters
    could describe a model that exceeds the memory.
    """
    d_model, distance = hparams.d_model, hparams.max_relative_position

    def linear(
        name: str, rows: int, columns: int, has_bias: bool = True
    ) -> Iterator[tuple[str, tuple[int, ...]]]:
        yield f"{name}/kernel", (rows, columns)
        if has_bias:
            yield f"{name}/bias", (columns,)

    def norm(name: str) -> Iterator[tuple[str, tuple[int, ...]]]:
        yield f"{name}/scale", (d_model,)
        yield f"{name}/bias", (d_model,)

    for side, depth, width in (
        ("encoder", hparams.num_layers, hparams.d_ff),
        ("decoder", hparams.decoder_layers, hparams.decoder_d_ff or hparams.d_ff),
    ):
        for index in range(depth):
            layer = f"{side}/layer_{index}"
            for kind in ("self", "cross")[: 1 + (side == "decoder")]:
                attention = f"{layer}/{kind}_attention"
                for part in ("query", "key", "value", "output"):
                    name, has_bias = f"{attention}/{part}", hparams.attention_bias
                    yield from linear(name, d_model, d_model, has_bias)
                for part in ("keys", "values") if distance and kind == "self" else ():
                    shape = 2 * distance + 1, d_model // hparams.num_heads
                    yield f"{attention}/relative_{part}/table", shape
                yield from norm(f"{attention}_residual/layer_norm")
            yield from linear(f"{layer}/feed_forward/hidden", d_model, width)
            yield from linear(f"{layer}/feed_forward/output", width, d_model)
            yield from norm(f"{layer}/feed_forward_residual/layer_norm")
        if hparams.norm == "pre":
            yield from norm(f"{side}/final_norm")
