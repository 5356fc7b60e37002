"""Helpers that create model directories and checkpoints."""

import numpy as np

from t2t_repro.hparams import HParams
from t2t_repro.models.variables import named_variables
from t2t_repro.runs import checkpoints
from t2t_repro.runs.model_dir import build_model
from t2t_repro.runs.run_metadata import RunMetadata

HPARAMS = HParams(
    problem="files", vocab_size=300, d_model=8, d_ff=8, num_heads=2, num_layers=1
)


def provenance(tokenizer, **changes):
    values = {
        "problem": "files",
        "source_lang": "en",
        "target_lang": "de",
        "data_dir": None,
        "problem_fingerprint": "files:en-de:" + "0" * 64,
        "vocabulary_fingerprint": tokenizer.fingerprint,
    }
    return RunMetadata(**(values | changes))


def save(directory, step, value, name=None, data=None):
    """Saves a checkpoint whose weights all equal `value`."""
    variables = named_variables(build_model(HPARAMS, 300))
    weights = {k: np.full(v.shape, value, "float32") for k, v in variables.items()}
    parent = directory.checkpoint_dir if name is None else directory.path
    return checkpoints.save(parent, step, weights, name=name, meta={"data": data})
