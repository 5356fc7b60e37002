"""Compiles programs for an absent GPU; requires JAX with its CUDA plugin.

    compile_hlo.py

Each request is {"program": file of a serialized HLO module, "chip": a
`GpuTargetConfigProto` as text}. The answer has `compile_seconds` of processor time, the
size of `temporaries` in bytes, and the scheduled module as text in `compiled`.
"""

import os
from pathlib import Path

from turns import turns

os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
# Autotuning would run kernels. Without it, cuBLAS computes all matmuls.
os.environ["XLA_FLAGS"] = (
    "--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false"
)


def main():
    """Answers the requests of standard input."""
    import numpy as np
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax.experimental import topologies
    from jaxlib.mlir import ir

    options = compiler.get_compile_options(1, 1, device_assignment=np.array([[0]]))
    for request, answer in turns():
        topology = topologies.get_topology_desc(
            platform="cuda", target_config=request["chip"], topology="1x1x1"
        )
        devices = xla_client._xla.DeviceList(tuple(topology.devices))
        program = Path(request["program"]).read_bytes()
        with mlir.make_ir_context():
            text = xla_client._xla.mlir.hlo_to_stablehlo(program)
            began = sum(os.times()[:4])  # Includes subprocesses.
            compiled = topology.devices[0].client.compile(
                ir.Module.parse(text), devices, options
            )
        answer["compile_seconds"] = sum(os.times()[:4]) - began
        memory = compiled.get_compiled_memory_stats()
        answer["temporaries"] = memory.temp_size_in_bytes
        answer["compiled"] = compiled.hlo_modules()[0].to_string()


if __name__ == "__main__":
    main()
