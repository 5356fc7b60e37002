"""GPUs for which programs are compiled, from NVIDIA's data sheets."""

from __future__ import annotations

from typing import NamedTuple

_KIB = 1024

# Both GPUs have the same processor ("NVIDIA H100 Tensor Core GPU Architecture"). Limits
# are in the CUDA C++ Programming Guide, "Technical Specifications per Compute
# Capability". A block can use all shared memory of a multiprocessor except 1 KiB.
_DESCRIPTION = f"""
gpu_device_info {{{{
  cuda_compute_capability {{{{ major: 9 }}}}
  core_count: 132
  fpus_per_core: 128
  clock_rate_ghz: 1.98
  l2_cache_size: {50 * _KIB**2}
  device_memory_size: {{memory}}
  memory_bandwidth: {{bandwidth}}
  shared_memory_per_core: {228 * _KIB}
  shared_memory_per_block_optin: {227 * _KIB}
  shared_memory_per_block: {48 * _KIB}
  threads_per_block_limit: 1024
  threads_per_core_limit: 2048
  threads_per_warp: 32
  registers_per_block_limit: {64 * _KIB}
  registers_per_core_limit: {64 * _KIB}
  block_dim_limit_x: {2**31 - 1}
  block_dim_limit_y: {2**16 - 1}
  block_dim_limit_z: {2**16 - 1}
}}}}
platform_name: "CUDA"
dnn_version_info {{{{ major: 9 minor: 8 }}}}
runtime_version {{{{ major: 12 minor: 9 patch: 0 }}}}
device_description_str: "{{name}}"
"""


class Chip(NamedTuple):
    """A GPU.

    Attributes:
        name: NVIDIA's name.
        memory: Memory in bytes.
        bandwidth: Memory bandwidth in bytes per second.
        peak: Peak FLOP/s in bfloat16 without sparsity.
    """

    name: str
    memory: int
    bandwidth: float
    peak: float = 989.5e12

    def description(self) -> str:
        """Returns the description for XLA, a `GpuTargetConfigProto` as text."""
        fields = self._asdict() | {"bandwidth": round(self.bandwidth)}
        return _DESCRIPTION.format(**fields)


CHIPS = {
    "H100": Chip("NVIDIA H100 80GB HBM3", 80 * 10**9, 3.35e12),
    "H200": Chip("NVIDIA H200", 141 * 10**9, 4.8e12),
}
"""The SXM versions."""
