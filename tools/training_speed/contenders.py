"""Who is timed, and on what work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from t2t_repro import hparams
from t2t_repro.system.errors import UserError
from training_speed.products import Product, products_of_step

TOOLS = Path(__file__).resolve().parents[1]
OURS, PRODUCTS, SQUARE = "t2t_repro", "products", "square"
TORCH, OPENNMT, TENSOR2TENSOR = "torch", "opennmt", "tensor2tensor"
PRECISIONS = ("float32", "bfloat16")

_VERSION = """
import sys
try:
    from importlib.metadata import version
except ImportError:
    import pkg_resources
    version = lambda name: pkg_resources.get_distribution(name).version
print(version(sys.argv[1]))
"""


@dataclass(frozen=True)
class Work:
    """What a contender computes: the sizes, and how.

    Attributes:
        size: the hyper-parameter set that the sizes are of.
        batch_size: sentence pairs of a step.
        length: positions of each side, all of them symbols.
        d_model: channels.
        d_ff: hidden channels of the feed-forward network.
        num_heads: h.
        num_layers: of the encoder, and of the decoder.
        vocab_size: V.
        precision: of products and activations.
        paper_dropout: for PyTorch: dropout only where the paper has it.
        dropout: P_drop.
        label_smoothing: the loss's.
    """

    size: str
    batch_size: int
    length: int
    d_model: int
    d_ff: int
    num_heads: int
    num_layers: int
    vocab_size: int
    precision: str = "float32"
    paper_dropout: bool = False
    dropout: float = 0.1
    label_smoothing: float = 0.1

    @property
    def tokens(self) -> int:
        """Target tokens of a step."""
        return self.batch_size * self.length

    def products(self) -> list[Product]:
        """Returns the matrix products of a step."""
        return products_of_step(
            batch_size=self.batch_size,
            length=self.length,
            d_model=self.d_model,
            d_ff=self.d_ff,
            num_heads=self.num_heads,
            num_layers=self.num_layers,
            vocab_size=self.vocab_size,
        )


def work_of(size: str, batch_size: int, length: int, vocab_size: int) -> Work:
    """Returns the work of a hyper-parameter set.

    Args:
        size: the set's name.
        batch_size: sentence pairs.
        length: positions of each side.
        vocab_size: V.

    Raises:
        UserError: there is no such set.
    """
    chosen = hparams.load(size)
    return Work(
        size=size,
        batch_size=batch_size,
        length=length,
        d_model=chosen.d_model,
        d_ff=chosen.d_ff,
        num_heads=chosen.num_heads,
        num_layers=chosen.num_layers,
        vocab_size=vocab_size,
    )


@dataclass(frozen=True)
class Program:
    """A program that trains, or a limit.

    Attributes:
        title: its name, for people.
        script: what its process runs.
        package: the package that it times; "" for this one.
        precisions: what it computes in.
    """

    title: str
    script: Path
    package: str = ""
    precisions: Sequence[str] = PRECISIONS


PROGRAMS: Mapping[str, Program] = {
    OURS: Program(OURS, TOOLS / "training_worker.py"),
    PRODUCTS: Program("products of the step", TOOLS / "training_worker.py"),
    SQUARE: Program("a square product", TOOLS / "training_worker.py"),
    TENSOR2TENSOR: Program(
        "tensor2tensor",
        TOOLS / "peers" / "tensor2tensor_training.py",
        "tensor2tensor",
        PRECISIONS[:1],
    ),
    OPENNMT: Program(
        "OpenNMT-tf",
        TOOLS / "peers" / "opennmt_training.py",
        "OpenNMT-tf",
        PRECISIONS[:1],
    ),
    TORCH: Program("PyTorch", TOOLS / "peers" / "torch_training.py", "torch"),
}
PEERS = (TENSOR2TENSOR, OPENNMT, TORCH)


@dataclass(frozen=True)
class Contender:
    """One row of the table.

    Attributes:
        name: for people.
        program: a key of `PROGRAMS`.
        python: the interpreter that runs it.
        precision: what it computes in.
        paper_dropout: for PyTorch: dropout only where the paper has it.
    """

    name: str
    program: str
    python: str
    precision: str
    paper_dropout: bool = False

    def command(self, work: Work) -> list[str]:
        """Returns the process's command line."""
        own = replace(work, precision=self.precision, paper_dropout=self.paper_dropout)
        program = PROGRAMS[self.program]
        task = [] if program.package else [self.program]
        return [self.python, str(program.script), *task, json.dumps(asdict(own))]


def contenders(
    args: Namespace, programs: Sequence[str]
) -> tuple[list[Contender], dict[str, str]]:
    """Finds out who is there.

    Args:
        args: the flags.
        programs: the keys of `PROGRAMS` that are wanted.

    Returns:
        The contenders; and what is known of each peer: its version, or why it is
        left out.

    Raises:
        UserError: an interpreter was named that does not have the peer.
    """
    found, told = [], {}
    for key in programs:
        program, python = PROGRAMS[key], sys.executable
        if program.package:
            flag = flag_of(key)
            python = getattr(args, flag)
            if not python:
                told[program.title] = f"left out: --{flag} names no interpreter"
                continue
            version = peer_version(python, program.package, f"--{flag}")
            told[program.title] = f"{program.package} {version}"
        for precision in args.precision:
            if precision not in program.precisions:
                continue
            name = f"{program.title} {precision}"
            found.append(Contender(name, key, python, precision))
            if key == TORCH:
                name = f"{name}, paper's dropout"
                found.append(Contender(name, key, python, precision, True))
    return found, told


def flag_of(peer: str) -> str:
    """Returns the name of the flag that names a peer's interpreter."""
    return {TENSOR2TENSOR: "t2t_python"}.get(peer, f"{peer}_python")


def peer_version(python: str, package: str, flag: str) -> str:
    """Asks an interpreter for the version of a package.

    Raises:
        UserError: there is no such interpreter, or it does not have the package.
    """
    try:
        done = subprocess.run(
            [python, "-c", _VERSION, package],
            env=peer_environment(),
            capture_output=True,
            encoding="utf-8",
        )
    except OSError as error:
        raise UserError(f"{flag} {python}: {error.strerror}") from None
    if done.returncode:
        raise UserError(f"{flag} {python} has no {package}; install it there")
    return done.stdout.strip()


def peer_environment() -> dict[str, str]:
    """Returns the environment of a process that has nothing of this package.

    But for oneDNN's setting (`TF_ENABLE_ONEDNN_OPTS`), which TensorFlow's peers share.
    """
    return {
        **{k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        "CUDA_VISIBLE_DEVICES": "-1",
    }
