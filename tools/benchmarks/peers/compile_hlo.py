"""Compiles programs for a GPU that is not there; needs JAX and its CUDA plugin.

compile_hlo.py

Each request is {"program": file of a serialized HLO module, "chip": a
`GpuTargetConfigProto` as text}; the answer has `compile_seconds`, the bytes of
`arguments`, `results` and `temporaries`, and `compiled`: the scheduled module as text.
"""

import os
import time
from pathlib import Path

from turns import turns

os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
# Nothing can be tried out: products go to cuBLAS.
os.environ["XLA_FLAGS"] = (
    "--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false"
)


def main():
    """Answers every request of standard input."""
    import numpy as np
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax.experimental import topologies
    from jaxlib.mlir import ir

    options = compiler.get_compile_options(1, 1, device_assignment=np.array([[0]]))
    for request, answer in turns():
        described = topologies.get_topology_desc(
            platform="cuda", target_config=request["chip"], topology="1x1x1"
        )
        devices = xla_client._xla.DeviceList(tuple(described.devices))
        program = Path(request["program"]).read_bytes()
        with mlir.make_ir_context():
            text = xla_client._xla.mlir.hlo_to_stablehlo(program)
            began = time.perf_counter()
            done = described.devices[0].client.compile(
                ir.Module.parse(text), devices, options
            )
        memory = done.get_compiled_memory_stats()
        answer["compile_seconds"] = time.perf_counter() - began
        answer["arguments"] = memory.argument_size_in_bytes
        answer["results"] = memory.output_size_in_bytes
        answer["temporaries"] = memory.temp_size_in_bytes
        answer["compiled"] = done.hlo_modules()[0].to_string()


if __name__ == "__main__":
    main()
