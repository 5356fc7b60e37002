"""Golden vectors of the real tensor2tensor, and models made from them."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from t2t_repro.hparams import HParams
from t2t_repro.interop.t2t_hparams import to_hparams
from t2t_repro.interop.variable_names import from_t2t
from t2t_repro.models.transformer import Transformer, named_variables


def load(path: Path) -> dict[str, np.ndarray]:
    """Returns the arrays of an npz file by name."""
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def t2t_variables(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns tensor2tensor's variables of a case, without the `var/` before each."""
    return {
        k.removeprefix("var/"): v for k, v in arrays.items() if k.startswith("var/")
    }


def hparams_of(arrays: dict[str, np.ndarray]) -> HParams:
    """Translates the case's tensor2tensor hparams into ours, without dropout."""
    t2t: dict[str, Any] = json.loads(str(arrays["hparams_json"]))
    return to_hparams(t2t, vocab_size=100).replace(
        dropout=0.0, attention_dropout=0.0, ffn_dropout=0.0, max_length=8
    )


def vocab_sizes(arrays: dict[str, np.ndarray]) -> tuple[int, int]:
    """Returns the rows of the source's and the target's table, from their scopes."""
    sizes = {
        name.split("/")[3]: int(name.split("symbol_modality_")[1].split("_")[0])
        for name in arrays
        if "symbol_modality_" in name and name.startswith("var/")
    }
    shared = sizes.get("shared", 0)
    return sizes.get("input_emb", shared), sizes.get("target_emb", shared)


def model_of(arrays: dict[str, np.ndarray], hparams: HParams) -> Transformer:
    """Builds the model of a case with tensor2tensor's weights in it."""
    model = Transformer(hparams, *vocab_sizes(arrays))
    model.build()
    if model.target_space is not None:
        model.target_space.target_space_id = int(arrays["target_space_id"])
    fill(model, t2t_variables(arrays), hparams.norm)
    return model


def fill(model: Transformer, values: dict[str, np.ndarray], norm: str) -> None:
    """Assigns tensor2tensor's variables to a model."""
    variables = named_variables(model)
    shapes = {name: tuple(v.shape) for name, v in variables.items()}
    for name, value in from_t2t(values, shapes, norm).items():
        variables[name].assign(value)
