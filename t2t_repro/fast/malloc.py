"""How the process keeps memory between the steps of a computation."""

import ctypes

_TRIM_THRESHOLD = -1  # The numbers of glibc's malloc.h.
_MMAP_MAX = -4


def keep_freed_memory() -> None:
    """Lets the process keep what TensorFlow frees, for the next step to use again.

    A training step on the CPU allocates and frees the same hundreds of megabytes
    every time. glibc gives large blocks back at once, and the kernel hands out zeroed
    pages again: a twentieth of the processor's time, more in a virtual machine. The
    price is that the process holds its peak until it ends. Nothing happens where the
    C library is another one.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(_MMAP_MAX, 0)
    mallopt(_TRIM_THRESHOLD, -1)
