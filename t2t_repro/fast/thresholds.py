"""Measured thresholds of the optimized implementations, with date and machine.

All machines had two cores. `docs/speed.md` contains the measurements, and "AVX2" a
processor without AVX-512, or one that oneDNN was held to AVX2 on.
"""

from typing import NamedTuple

from t2t_repro.system.processor import has_amx, uses_avx512

# 2026-11-27, EPYC (Zen 5): compiling takes 2 to 3 s of processor time, and saves a
# third of the time of a search or more.
SECONDS_THAT_PAY = 4.0
"""Time in seconds that searches of a shape take before a process compiles them."""

# 2026-11-27, EPYC (Zen 5): a file has about three lengths to compile, in 3 s of
# processor time each. For a line of 26 subwords, base then takes 40 (float32) or 9 ms
# (int8) less, and more with AVX2.
LINES_THAT_PAY = {"float32": 500, "int8": 3_000}
"""Minimum number of lines of a file for which compiling saves time, by precision."""

# Not measured: a choice between the number of programs and padding.
LENGTH_MULTIPLE = 32
"""Number of which compiled source lengths are multiples."""

# Not measured: every step attends to the cache slots of all steps.
MAX_COMPILED_STEPS = 256
"""Maximum output length of a compiled search."""


class FewSentences(NamedTuple):
    """Up to how many sentences the compiled search is the faster one.

    With more sentences, matmuls take most of the time, and sentences that are done
    would have to leave the batch.

    Attributes:
        together: Number for one search, whose matmuls use all cores.
        per_core: Number for each of several parallel searches, one per core.
    """

    together: int
    per_core: int


def few_sentences(is_int8: bool) -> FewSentences:
    """Returns the threshold of this processor; `is_int8`: the matmuls are in int8."""
    if not uses_avx512():
        # 2026-11-27, EPYC (Zen 5) held to AVX2; 2026-11-28, EPYC (Zen 3).
        return FewSentences(1, 2) if is_int8 else FewSentences(4, 8)
    if not is_int8:
        # 2026-11-27, EPYC (Zen 5); 2026-11-28, EPYC (Zen 4).
        return FewSentences(4, 4)
    # 2026-11-27, EPYC (Zen 5): XLA multiplies the rows of one sentence in int8 as fast
    # as oneDNN, which is faster for more rows. 2026-11-28, Xeon with AMX: two searches
    # at once are faster with XLA.
    return FewSentences(1, int(has_amx()))


def most_few_rows() -> int:
    """Returns the largest number of rows with which reading a matrix takes longest."""
    # 2026-11-27, EPYC (Zen 5): without padded copies, oneDNN's matmuls of 32 rows take
    # 20 % more time with AVX2. With AVX-512, matmuls in halves are as fast as whole
    # ones up to 32 rows.
    return 32 if uses_avx512() else 15


# 2026-11-23, EPYC (Zen 3): starting an operation on another core takes about the time
# of reading half a MiB.
MIN_DIVIDED_WEIGHTS = 3 * 2**18
"""Minimum number of elements of a matrix that two cores read: 3 MiB in float32."""

# 2026-11-28, EPYC (Zen 3 and Zen 5): a table on the left of the matmul takes 0.9 to 1.4
# times the time of a copy.
MAX_COPIED_WEIGHTS = 2**23
"""Maximum number of elements of a table that is copied with AVX2: 32 MiB in float32."""

# 2026-11-23, EPYC (Zen 3).
STEPS_PER_COPY = 6
"""Number of steps for which each copy of the KV cache adds free slots. With more,
attention reads more masked slots; with fewer, the cache is copied more often."""

# 2026-11-21, machine not recorded.
SMALLEST_CHUNKED = 1024
"""Minimum number of columns for which `top_k` in chunks is the faster one."""
CHUNK_WIDTHS = range(48, 129)
"""Fast chunk widths, in elements; measured with 6,000 to 37,000 columns."""
