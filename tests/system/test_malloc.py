"""Freed memory stays in the process and is reused, or is returned to the kernel."""

import platform
import subprocess
import sys

import pytest

# The kernel counts a page fault for each new page of 4 kB.
_PROGRAM = """
import ctypes, resource, sys
from t2t_repro.system.malloc import keep_freed_memory

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


# A block in use at the end keeps glibc from returning the freed blocks before it.
_RELEASE = """
import ctypes
from pathlib import Path
from t2t_repro.system.malloc import release_freed_memory

c = ctypes.CDLL(None)
c.malloc.restype = ctypes.c_void_p
c.malloc.argtypes = [ctypes.c_size_t]
c.free.argtypes = [ctypes.c_void_p]
blocks = [c.malloc(2**16) for _ in range(1000)]
for block in blocks:
    ctypes.memset(block, 1, 2**16)
for block in blocks[:-1]:
    c.free(block)

def pages():
    return int(Path("/proc/self/statm").read_text().split()[1])

before = pages()
release_freed_memory()
print(before - pages())
"""
on_glibc = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="the functions are those of glibc"
)


def number_printed(program: str, *arguments: str) -> int:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout)


@on_glibc
def test_reusing_freed_memory_causes_no_page_faults():
    pages = 64 * 2**20 // 4096
    assert number_printed(_PROGRAM, "keep") < pages / 100
    assert number_printed(_PROGRAM, "leave") >= pages / 2


@on_glibc
def test_freed_memory_is_returned_to_the_kernel():
    # 64 MB in pages of 4 kB.
    assert number_printed(_RELEASE) > 0.9 * 1000 * 2**16 / 4096
