"""Roofline model: expected time of a compiled program, kernel by kernel.

A kernel reads its operands and writes its result once, limited by the bandwidth of the
memory, and multiplies, limited by the peak speed of the GPU. It takes the longer of the
two times. If it slices or gathers an operand, it reads only the selected part.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.chips import Chip

BANDWIDTH_REACHED = 0.85
PEAK_REACHED = 0.606
LAUNCH_SECONDS = 1.5e-6
"""Assumed fractions of bandwidth and peak that good kernels reach (600 TFLOP/s in
bfloat16 on an H100), and the time to launch a kernel."""

_BYTES = {"pred": 1, "bf16": 2, "f16": 2}
_NO_KERNEL = {"parameter", "get-tuple-element", "bitcast", "constant", "tuple"}
_SELECTING = {"slice", "dynamic-slice", "gather"}
_COMPUTATION = re.compile(r"\n(?:ENTRY )?%([\w.-]+) \(.*\{\n((?:  .*\n)*)")
_INSTRUCTION = re.compile(r"\s+(ROOT )?%?([\w.-]+) = (\(.*?\)|\S+) ([a-z-]+)\((.*)")
_SHAPE = re.compile(r"\b([a-z]+\d+|pred)\[([\d,]*)\]")


class Kernel(NamedTuple):
    """A kernel of a program.

    Attributes:
        name: Name of the instruction.
        kind: Kind of the kernel.
        moved: Number of bytes read and written.
        operations: Number of floating-point operations of a matmul.
    """

    name: str
    kind: str
    moved: int
    operations: int

    def seconds(self, chip: Chip) -> float:
        """Returns the expected time."""
        moving = self.moved / (chip.bandwidth * BANDWIDTH_REACHED)
        computing = self.operations / (chip.peak * PEAK_REACHED)
        return max(moving, computing) + LAUNCH_SECONDS


def kernels(program: str) -> list[Kernel]:
    """Returns the kernels of a program; those in a loop once per iteration.

    Args:
        program: HLO module that XLA has scheduled for a GPU, as text.
    """
    entry = _one(r"\nENTRY %([\w.-]+)", program)
    return list(_kernels(entry, dict(_COMPUTATION.findall(program))))


def _kernels(computation: str, bodies: dict[str, str]) -> Iterator[Kernel]:
    """Yields the kernels of a computation; `bodies` has the text of each."""
    shapes: dict[str, str] = {}
    for _, name, shape, operation, rest in _instructions(bodies[computation]):
        shapes[name] = shape
        if operation in _NO_KERNEL:
            continue
        if operation == "while":
            iterations = int(_one(r'"known_trip_count":{"n":"(\d+)"', rest))
            body = _one(r"body=%([\w.-]+)", rest)
            yield from iterations * list(_kernels(body, bodies))
            continue
        operands = [shapes[operand] for operand in _operands(rest)]
        read, written = [_bytes(each) for each in operands], _bytes(shape)
        kind, moved, operations = operation, sum(read) + written, 0
        if operation == "fusion":
            kind += f" {_one(r'kind=(k[A-Z][a-z]+)', rest)}"
            body = bodies[_one(r"calls=%([\w.-]+)", rest)]
            moved = _bytes_of_fusion(body, read, written)
        elif operation in _SELECTING:
            moved = 2 * written
        elif operation == "custom-call":
            kind = _one(r'custom_call_target="([^"]+)"', rest)
        if kind == "__cublas$lt$matmul":
            kind, result = "matmul", _first(shape)  # The second is scratch space.
            moved = sum(read) + _bytes(result)
            operations = _matmul_operations(result, operands[0], rest)
        yield Kernel(name, kind, moved, operations)


def _bytes_of_fusion(body: str, read: list[int], written: int) -> int:
    """Returns the number of bytes that a fusion moves.

    Args:
        body: Text of the fused computation.
        read: Size of each operand in bytes.
        written: Size of the result in bytes.
    """
    parameters, shapes = dict[str, int](), dict[str, str]()
    selected, whole = Counter[str](), set[str]()
    for root, name, shape, operation, rest in _instructions(body):
        shapes[name] = shape
        if operation == "parameter":
            parameters[name] = int(rest.partition(")")[0])
            continue
        first, *others = _operands(rest) or [""]
        if operation in _SELECTING:
            selected[first] += _bytes(shape)
        elif operation == "dynamic-update-slice":
            selected[first] += 0  # Only the slice is written.
            if root:
                written = _bytes(shapes[others[0]])
        else:
            whole.add(first)
        whole.update(others)
    for name in selected.keys() & parameters.keys() - whole:
        index = parameters[name]
        read[index] = min(read[index], selected[name])
    return sum(read) + written


def _instructions(body: str) -> Iterator[tuple[str, ...]]:
    """Yields (ROOT or "", name, shape, operation, rest) of each instruction."""
    for line in body.splitlines():
        found = _INSTRUCTION.match(line)
        assert found, line
        yield found.groups("")


def _operands(rest: str) -> list[str]:
    """Returns the names of an instruction's operands; `rest` starts with them."""
    return re.findall(r"%([\w.-]+)", rest.partition(")")[0])


def _matmul_operations(result: str, left: str, rest: str) -> int:
    """Returns the number of multiplications and additions of a matmul."""
    contracted = _one(r'"lhs_contracting_dimensions":\[([^\]]*)\]', rest)
    inner = [_sizes(left)[int(each)] for each in re.findall(r"\d+", contracted)]
    return 2 * math.prod(_sizes(result)) * math.prod(inner)


def _first(shape: str) -> str:
    """Returns the first shape of a tuple: "(f32[2]{0}, s8[9]{0})" -> "f32[2]"."""
    return _one(f"({_SHAPE.pattern})", shape)


def _sizes(shape: str) -> list[int]:
    """Returns the dimensions of a shape: "f32[2,3]{1,0}" -> [2, 3]."""
    return [int(size) for size in re.findall(r"\d+", _first(shape).partition("[")[2])]


def _bytes(shape: str) -> int:
    """Returns the size of a tensor, or of all tensors of a tuple, in bytes."""
    return sum(
        _BYTES.get(kind, int(re.sub(r"\D", "", kind) or 0) // 8)
        * math.prod(int(size) for size in sizes.split(",") if size)
        for kind, sizes in _SHAPE.findall(shape)
    )


def _one(pattern: str, text: str) -> str:
    """Returns the first group of the first match."""
    found = re.search(pattern, text)
    assert found, f"no {pattern} in the program: {text[:200]}"
    return found[1]
