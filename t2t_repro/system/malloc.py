"""Settings of glibc's memory allocator."""

import ctypes

_TRIM_THRESHOLD = -1  # Constants of glibc's malloc.h.
_MMAP_MAX = -4


def keep_freed_memory() -> None:
    """Configures glibc to reuse the memory that TensorFlow frees.

    Each training step on a CPU allocates and frees the same hundreds of megabytes. By
    default glibc returns large blocks to the kernel, and zeroing the new pages takes a
    twentieth of the CPU time, more in a virtual machine. In return the process keeps
    its peak memory until it ends. Other C libraries are not changed.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(_MMAP_MAX, 0)
    mallopt(_TRIM_THRESHOLD, -1)


def release_freed_memory() -> None:
    """Lets glibc return freed memory to the kernel; does nothing in other libraries."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
