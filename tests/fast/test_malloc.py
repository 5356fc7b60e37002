"""Freed memory stays in the process and is reused."""

import platform
import subprocess
import sys

import pytest

# The kernel counts a page fault for each new page of 4 kB.
_PROGRAM = """
import ctypes, resource, sys
from t2t_repro.fast.malloc import keep_freed_memory

SIZE = 64 * 2**20
c = ctypes.CDLL(None)
c.malloc.restype = ctypes.c_void_p
c.malloc.argtypes = [ctypes.c_size_t]
c.free.argtypes = [ctypes.c_void_p]

def faults_of_a_buffer():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    buffer = c.malloc(SIZE)
    ctypes.memset(buffer, 1, SIZE)
    c.free(buffer)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "keep":
    keep_freed_memory()
faults_of_a_buffer()
print(faults_of_a_buffer())
"""


def faults(mode: str) -> int:
    return int(
        subprocess.run(
            [sys.executable, "-c", _PROGRAM, mode],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="mallopt is a function of glibc"
)
def test_reusing_freed_memory_causes_no_page_faults():
    pages = 64 * 2**20 // 4096
    assert faults("keep") < pages / 100
    assert faults("leave") >= pages / 2
