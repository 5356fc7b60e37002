"""The few places where the benchmarks reach inside of the model that they time."""

from t2t_repro.fast.malloc import keep_freed_memory  # noqa: F401

# A step's products as the decoder makes them.
from t2t_repro.fast.small_batch_matmul import prepack  # noqa: F401
from t2t_repro.runs.model_dir import build_model as random_model  # noqa: F401
