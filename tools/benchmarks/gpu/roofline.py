"""The least time that a compiled program takes on a chip, kernel by kernel.

A kernel reads its operands and writes its results once, at the memory's bandwidth, and
multiplies at the peak of the chip: it takes the longer of the two, and the program the
sum of all. Of an operand that it slices, or gathers rows of, it reads only these.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.gpu.chips import Chip

BANDWIDTH_REACHED = 0.85
PEAK_REACHED = 0.606
LAUNCH_SECONDS = 1.5e-6
"""What a real chip is expected to reach: shares of its figures that good kernels get
(600 TFLOP/s of bfloat16 on an H100), and what starting a kernel costs."""

_BYTES = {"pred": 1, "bf16": 2, "f16": 2}
_NO_KERNEL = frozenset(("parameter", "get-tuple-element", "bitcast", "constant"))
_IN_PART = frozenset(("slice", "dynamic-slice", "gather"))
_INSTRUCTION = re.compile(r"\s+(ROOT )?%?([\w.-]+) = (\(.*?\)|\S+) ([a-z-]+)\((.*)")
_SHAPE = re.compile(r"\b([a-z]+\d+|pred)\[([\d,]*)\]")


class Kernel(NamedTuple):
    """One kernel of a program: the bytes that it moves, and its operations."""

    name: str
    kind: str
    moved: int
    operations: int

    def least_seconds(self, chip: Chip) -> float:
        """Returns the time by the chip's own figures."""
        return max(self.moved / chip.bandwidth, self.operations / chip.peak)

    def expected_seconds(self, chip: Chip) -> float:
        """Returns the time by the shares of them that are reached."""
        moving = self.moved / (chip.bandwidth * BANDWIDTH_REACHED)
        return max(moving, self.operations / (chip.peak * PEAK_REACHED)) + (
            LAUNCH_SECONDS
        )


def kernels(program: str) -> list[Kernel]:
    """Reads the kernels of a module that XLA scheduled for a GPU, as text."""
    found: list[Kernel] = []
    shapes: dict[str, str] = {}
    bodies = dict(re.findall(r"\n%([\w.-]+) \(.*\{\n((?:  .*\n)*)", program))
    for line in program[program.index("\nENTRY ") :].splitlines():
        instruction = _INSTRUCTION.match(line)
        if not instruction:
            continue
        root, name, shape, operation, rest = instruction.groups()
        shapes[name] = shape
        if operation in _NO_KERNEL or (root and operation == "tuple"):
            continue
        operands = _operands(rest)
        kind, operations = operation, 0
        read = [_bytes(shapes[operand]) for operand in operands]
        if operation == "fusion":
            kind += f" {_one(r'kind=(k[A-Z][a-z]+)', rest)}"
            in_part = _read_in_part(bodies[_one(r"calls=%([\w.-]+)", rest)])
            read = [min(each, in_part.get(n, each)) for n, each in enumerate(read)]
        elif operation == "custom-call":
            kind = _one(r'custom_call_target="([^"]+)"', rest)
        if kind == "__cublas$lt$matmul":
            kind, shape = "product", _first(shape)  # The second is scratch space.
            operations = _of_product(shape, shapes[operands[0]], rest)
        found.append(Kernel(name, kind, sum(read) + _bytes(shape), operations))
    return found


def _read_in_part(body: str) -> dict[int, int]:
    """Returns the bytes that a fusion reads of its operands that it cuts, by number."""
    numbers, cut, whole = {}, Counter[str](), set()
    for line in body.splitlines():
        instruction = _INSTRUCTION.match(line)
        assert instruction, line
        _, name, shape, operation, rest = instruction.groups()
        if operation == "parameter":
            numbers[name] = int(rest.partition(")")[0])
            continue
        first, *others = _operands(rest) or [""]
        if operation in _IN_PART:
            cut[first] += _bytes(shape)
        else:
            whole.add(first)
        whole.update(others)
    return {numbers[each]: cut[each] for each in cut.keys() & numbers.keys() - whole}


def _operands(rest: str) -> list[str]:
    """Returns the names of an instruction's operands, read after its bracket."""
    return re.findall(r"%([\w.-]+)", rest.partition(")")[0])


def _of_product(shape: str, left: str, rest: str) -> int:
    """Returns the operations of a product: two for each multiplication."""
    contracted = _one(r'"lhs_contracting_dimensions":\[([^\]]*)\]', rest)
    sizes = _sizes(left)
    inner = [sizes[int(each)] for each in re.findall(r"\d+", contracted)]
    return 2 * math.prod(_sizes(shape)) * math.prod(inner)


def _first(shape: str) -> str:
    """Returns the first of a tuple's shapes: "(f32[2]{0}, s8[9]{0})" -> "f32[2]"."""
    found = _SHAPE.search(shape)
    assert found, shape
    return found[0]


def _sizes(shape: str) -> Sequence[int]:
    """Returns the dimensions of a shape: "f32[2,3]{1,0}" -> (2, 3)."""
    return [int(size) for size in re.findall(r"\d+", _first(shape).partition("[")[2])]


def _bytes(shape: str) -> int:
    """Returns the bytes of a shape, or of all shapes of a tuple."""
    return sum(
        _BYTES.get(kind, int(re.sub(r"\D", "", kind) or 0) // 8)
        * math.prod(int(size) for size in sizes.split(",") if size)
        for kind, sizes in _SHAPE.findall(shape)
    )


def _one(pattern: str, text: str) -> str:
    """Returns the text of a pattern's group."""
    found = re.search(pattern, text)
    assert found, f"XLA wrote no {pattern}: {text[:200]}"
    return found[1]
