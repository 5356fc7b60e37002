"""Names of variables in earlier versions of tensor2tensor, and with TensorFlow 2.

Until version 1.2 (tags v1.0.0 to v1.2.9 of github.com/tensorflow/tensor2tensor),
attention has biases and one kernel for queries, keys and values
(common_attention.py:compute_qkv), and layers are convolutions with kernels of size 1
(common_layers.py:conv_internal).
"""

import re
from collections.abc import Iterator

import numpy as np

from t2t_repro.interop.formats.array_store import ArrayStore
from t2t_repro.interop.formats.object_graph import OBJECTS, variable_names
from t2t_repro.system.errors import UserError

_NORM = "layer_postprocess/layer_norm/"
# Regular expressions of former names -> names of version 1.15, applied in this order.
_FORMER = (
    # The scopes before the model's parts vary. TensorFlow 2 repeats some of them.
    (
        r"^(training/)?(?:(?:transformer|model|body|parallel_\d+(?:_\d+)?)/)*"
        r"(body/|symbol_modality_)",
        r"\1transformer/\2",
    ),
    (r"_single/", "/"),
    (r"/conv_hidden_relu/", "/ffn/"),
    (r"/ffn/ffn/", "/ffn/"),
    # Version 1.0 lacks the scopes of the sub-layers.
    (r"/(?:en|de)coder_self_attention/", "/self_attention/multihead_attention/"),
    (r"/encdec_attention/(?=\w+_transform/)", "/encdec_attention/multihead_attention/"),
    (r"(/layer_\d+)/layer_norm/", rf"\1/self_attention/{_NORM}"),
    (r"(/encoder/layer_\d+)/layer_norm_1/", rf"\1/ffn/{_NORM}"),
    (r"(/decoder/layer_\d+)/layer_norm_1/", rf"\1/encdec_attention/{_NORM}"),
    (r"(/decoder/layer_\d+)/layer_norm_2/", rf"\1/ffn/{_NORM}"),
)
_FUSED = re.compile(r"(.*multihead_attention/)(q|kv|qkv)_transform(/.*)")


def use_current_names(store: ArrayStore) -> ArrayStore:
    """Returns the variables of a checkpoint by their names in version 1.15.

    Fused kernels, biases and moments are split. Variables of other programs keep their
    names.

    Args:
        store: Variables by the names, or keys, in the checkpoint.

    Raises:
        UserError: Two variables have the same name in version 1.15, or a fused variable
            does not have the shape of one.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    columns: dict[str, tuple[str, int]] = {}
    names = variable_names(store)
    for key, shape in store.shapes.items():
        if key == OBJECTS:
            continue
        matrix = shape[2:] if len(shape) == 4 and shape[:2] == (1, 1) else shape
        for name, first, width in _parts(key, names.get(key) or key, store):
            if name in columns:
                raise UserError(
                    f"{store.file}: {columns[name][0]} and {key} are both {name} in "
                    "tensor2tensor 1.15; give a checkpoint of one model"
                )
            shapes[name] = (*matrix[:-1], width) if width else matrix
            columns[name] = key, first

    def read(name: str) -> np.ndarray:
        key, first = columns[name]
        array = store.read(key)
        if array.shape == shapes[name]:
            return array
        # (1, 1, rows, columns) -> (rows, columns of this part)
        matrix = array.reshape(*shapes[name][:-1], -1)
        return matrix[..., first : first + shapes[name][-1]]

    return ArrayStore(store.file, shapes, read, ("float32",))


def _parts(key: str, name: str, store: ArrayStore) -> Iterator[tuple[str, int, int]]:
    """Yields the name of each part of a variable, its first column and its width.

    The width is 0 if the variable is not fused.
    """
    for former, current in _FORMER:
        name = re.sub(former, current, name)
    fused = _FUSED.fullmatch(name)
    if fused is None:
        yield name, 0, 0
        return
    scope, parts, rest = fused.groups()
    shape = store.shapes[key]
    scope_in_file = key.removeprefix("training/").partition(f"{parts}_transform")[0]
    output = f"{scope_in_file}output_transform_single/kernel"
    # The output projection has one row per channel of the values.
    rows = store.shapes.get(output, 2 * shape[-1:])
    if len(rows) < 2 or not shape:
        raise UserError(
            f"{store.file}: {key} has the shape {shape} and {output} the shape {rows}, "
            "which is not an attention; copy the checkpoint again"
        )
    width, values = shape[-1], rows[-2] if "v" in parts else 0
    first = 0
    for part in parts:
        columns = values if part == "v" else (width - values) // len(parts.strip("v"))
        yield f"{scope}{part}{rest}", first, columns
        first += columns
