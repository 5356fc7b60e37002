"""Internal functions of t2t_repro that the benchmarks use."""

from t2t_repro.fast.cached_decoder import matmuls_of_a_step  # noqa: F401
from t2t_repro.fast.malloc import keep_freed_memory  # noqa: F401

# The decoder's matmuls for small batches.
from t2t_repro.fast.small_batch_matmul import prepack  # noqa: F401
from t2t_repro.runs.model_dir import build_model as random_model  # noqa: F401
