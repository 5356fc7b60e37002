"""Fuzzes the readers of untrusted files, guided by the coverage of this package.

    TMPDIR=/dev/shm PYTHONPATH=. python tools/fuzz_readers.py --work_dir fuzzed

Needs `pip install atheris` and the requirements of the tests, whose small files are the
first inputs. Each reader runs in a process of its own with a limit of memory. Faults
are exceptions that a command would not turn into one line, crashes of other software,
and inputs that take too long or too much memory. If there are any, the exit status
is 1. The same command resumes with the readers that have no row in `targets.tsv` yet,
and prints the rows of the others when it is interrupted.
"""

import multiprocessing
import os
import re
import resource
import sys
import tempfile
import time
import traceback
from argparse import Namespace
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

try:
    import atheris
except ModuleNotFoundError:  # --help works without it.
    atheris = None

# Only modules that are imported here are measured.
with atheris.instrument_imports(include=["t2t_repro"]) if atheris else nullcontext():
    from flags import REQUIRED, choice, parser, several
    from fuzzing.targets import TARGETS, Readers

    from t2t_repro.command_line import cli
    from t2t_repro.system.errors import UserError

EXIT_FAULTS = 1
COLUMNS = ("target", "seconds", "executions", "edges", "faults")
_STARTS = 10
_STATUS = re.compile(r"^#(\d+)\s+\w+\s+cov: (\d+)", re.MULTILINE)
_CRASH = re.compile(r"ERROR: libFuzzer: .+|^\w*(?:Error|terminate)\b.*", re.MULTILINE)


def main(argv: Sequence[str] | None = None) -> None:
    """Fuzzes each reader and prints a table and the faults."""
    arguments = parser(
        __doc__,
        ("work_dir", Path, REQUIRED, "folder of the inputs, the faults and the table"),
        ("seconds", cli.int_range(1), 600, "seconds for each reader"),
        ("timeout", cli.int_range(1), 20, "limit of seconds for one input"),
        ("megabytes", cli.int_range(1), 1024, "limit of additional memory in MiB"),
        ("targets", several(choice(TARGETS)), [*TARGETS], "names of the readers"),
        json_flag=False,
    ).parse_args(argv)
    if atheris is None:
        raise UserError("atheris is not installed; run pip install atheris")
    work_dir = arguments.work_dir
    work_dir.mkdir(parents=True, exist_ok=True)
    table = work_dir / "targets.tsv"
    if not table.exists():
        table.write_text("\t".join(COLUMNS) + "\n")
    try:
        for name in arguments.targets:
            if f"\n{name}\t" not in table.read_text():
                row = "\t".join(map(str, fuzz(name, arguments)))
                with table.open("a") as file:
                    file.write(f"{name}\t{row}\n")
    finally:
        print(table.read_text(), end="")
        faults = [f"{p.stem}\t{p.read_text()}" for p in work_dir.glob("*.faults")]
        print(*sorted(faults), sep="", end="", flush=True)
    sys.exit(EXIT_FAULTS if faults else 0)


def fuzz(name: str, arguments: Namespace) -> tuple[int, int, int, int]:
    """Fuzzes a reader in another process, and starts it again after a crash.

    Returns the seconds, the executions, the covered edges and the number of faults.
    """
    faults, log = (arguments.work_dir / f"{name}.{end}" for end in ("faults", "log"))
    executions = edges = 0
    left = float(arguments.seconds)
    for _ in range(_STARTS):
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as files:
            process = multiprocessing.get_context("fork").Process(
                target=_fuzz_forked, args=(name, Path(files), arguments, int(left))
            )
            process.start()
            process.join()
        left -= time.monotonic() - began
        text = log.read_text(errors="replace")
        counts = [(int(n), int(cover)) for n, cover in _STATUS.findall(text)]
        executions += counts[-1][0] if counts else 0
        edges = max(edges, *(cover for _, cover in counts), 0)
        if process.exitcode:
            crash = _CRASH.search(text)
            _add_fault(faults, crash[0] if crash else f"exit {process.exitcode}")
            log.rename(f"{log}.{int(left)}")
        if not process.exitcode or left < 1:
            break
    count = len(faults.read_text().splitlines()) if faults.exists() else 0
    return arguments.seconds - round(left), executions, edges, count


def _fuzz_forked(name: str, files: Path, arguments: Namespace, seconds: int) -> None:
    """Fuzzes a reader until the time is over, and ends the process."""
    work_dir = arguments.work_dir
    output = os.open(work_dir / f"{name}.log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    readers, corpus = Readers(TARGETS[name], files), work_dir / name
    corpus.mkdir(exist_ok=True)
    for number, seed in enumerate(readers.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
        if not readers.read(seed):
            raise UserError(f"{name}: a valid file is refused")

    def read(data: bytes) -> None:
        # The limit is that of one input: other software keeps memory of earlier ones.
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + (arguments.megabytes << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
        try:
            readers.read(data)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            own = [frame for frame in frames if "t2t_repro" in frame.filename][-1]
            place = f"{type(error).__name__} at {Path(own.filename).name}:{own.lineno}"
            _add_fault(work_dir / f"{name}.faults", place, f"{error!r:.200}", data)

    flags = [f"-max_total_time={seconds}", f"-timeout={arguments.timeout}"]
    flags += ["-keep_seed=1", "-len_control=0", "-rss_limit_mb=0"]
    flags += [f"-artifact_prefix={work_dir}/{name}-"]
    atheris.Setup([name, *flags, str(corpus)], read)
    atheris.Fuzz()


def _add_fault(path: Path, place: str, message: str = "", data: bytes = b"") -> None:
    """Appends a fault with the beginning of its input, unless its place is listed."""
    text = path.read_text() if path.exists() else ""
    if f"{place}\t" not in text:
        path.write_text(f"{text}{place}\t{message}\t{data[:2000].hex()}\n")


if __name__ == "__main__":
    cli.run(main)
