"""The GPUs that programs are compiled for, as NVIDIA's papers describe them."""

from dataclasses import dataclass, replace

KIB = 1024


@dataclass(frozen=True)
class Chip:
    """One GPU."""

    name: str  # As NVIDIA calls it.
    capability: int  # Compute capability, major number; the minor one is 0.
    multiprocessors: int
    lanes: int  # Float32 units of a multiprocessor.
    clock: float  # Boost, GHz.
    l2: int  # Bytes of the cache that all share.
    shared: int  # KiB of shared memory of a multiprocessor.
    memory: int  # Bytes.
    bandwidth: float  # Memory's bytes a second.
    peak: float  # Operations a second, bfloat16, without sparsity.

    def description(self) -> str:
        """Returns the chip's description for XLA, a `GpuTargetConfigProto` as text."""
        # What both have in common is in the CUDA C++ Programming Guide, "Technical
        # Specifications per Compute Capability"; of the shared memory of a
        # multiprocessor a block may have all but 1 KiB.
        return f"""
gpu_device_info {{
  cuda_compute_capability {{ major: {self.capability} }}
  core_count: {self.multiprocessors}
  fpus_per_core: {self.lanes}
  clock_rate_ghz: {self.clock}
  l2_cache_size: {self.l2}
  device_memory_size: {self.memory}
  memory_bandwidth: {self.bandwidth:.0f}
  shared_memory_per_core: {self.shared * KIB}
  shared_memory_per_block_optin: {(self.shared - 1) * KIB}
  shared_memory_per_block: {48 * KIB}
  threads_per_block_limit: 1024
  threads_per_core_limit: 2048
  threads_per_warp: 32
  registers_per_block_limit: {64 * KIB}
  registers_per_core_limit: {64 * KIB}
  block_dim_limit_x: {2**31 - 1}
  block_dim_limit_y: {2**16 - 1}
  block_dim_limit_z: {2**16 - 1}
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 8 }}
runtime_version {{ major: 12 minor: 9 patch: 0 }}
device_description_str: "{self.name}"
"""


# "NVIDIA H100 Tensor Core GPU" data sheet, H100 SXM: 80 GB, 3.35 TB/s, 1,979 TFLOPS of
# bfloat16 with sparsity, which is twice the figure without it; "NVIDIA H100 Tensor Core
# GPU Architecture" for the rest.
_H100 = Chip(
    "NVIDIA H100 80GB HBM3",
    capability=9,
    multiprocessors=132,
    lanes=128,
    clock=1.98,
    l2=50 * KIB**2,
    shared=228,
    memory=80 * 10**9,
    bandwidth=3.35e12,
    peak=989.5e12,
)

CHIPS = {
    "H100": _H100,
    # "NVIDIA H200 Tensor Core GPU" data sheet, H200 SXM: the H100's processor, 141 GB,
    # 4.8 TB/s.
    "H200": replace(_H100, name="NVIDIA H200", memory=141 * 10**9, bandwidth=4.8e12),
    # "NVIDIA A100 Tensor Core GPU" data sheet, A100 80GB SXM: 2,039 GB/s, 312 TFLOPS;
    # "NVIDIA A100 Tensor Core GPU Architecture".
    "A100": Chip(
        "NVIDIA A100-SXM4-80GB",
        capability=8,
        multiprocessors=108,
        lanes=64,
        clock=1.41,
        l2=40 * KIB**2,
        shared=164,
        memory=80 * 10**9,
        bandwidth=2.039e12,
        peak=312e12,
    ),
}
