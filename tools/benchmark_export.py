"""Measures an export: time, size, load time, memory, and speed against this process.

    python tools/benchmark_export.py --hparams base,vocab_divisor=37000 \
        --vocab_file vocab.model --source_file text.en
    python tools/benchmark_export.py --model_dir mymodel --source_file text.en

The first exports random weights of a size (`vocab_divisor` gives the tables the rows
of a larger vocabulary); random weights never end a sentence, so every translation
grows to its limit. Both translate the same batches of the same texts: the process that
made the model by its `Translator`, and a process without this package by TensorFlow's
graph loader; batch by batch in turn, round after round, because a machine's speed
drifts. The ratio is the median over the pairs of batches.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError
from t2t_repro.system.text_files import read_lines

if TYPE_CHECKING:
    from t2t_repro.hparams import HParams
    from t2t_repro.models.transformer import Transformer
    from t2t_repro.tokenizers.tokenizer import Tokenizer

WORKER = Path(__file__).parent / "peers" / "time_export.py"
_MEBIBYTE = 2**20


@dataclass(frozen=True)
class Report:
    """What was measured.

    Attributes:
        parameters: weights of the model.
        export_seconds: from the model to the finished version.
        size_mib: of the version's files.
        load_seconds: of the graph loader.
        first_request_seconds: of the first batch after loading.
        memory_loaded_mib: memory of the process after the first batch, what
            TensorFlow itself takes left out.
        memory_mib: the most it ever had, likewise.
        tokens: subwords of all translations of a round, EOS included.
        tokens_per_second: of the export, each batch in its median time.
        in_process_tokens_per_second: of the translator, likewise.
        ratio: of the two speeds, the median over all batches of all rounds.
        processor_ratio: of the processor's time that the translator and the export
            took for everything, which others on the machine hardly touch.
        equal_lines: translations that are the same in both.
        lines: how many there are.
    """

    parameters: int
    export_seconds: float
    size_mib: float
    load_seconds: float
    first_request_seconds: float
    memory_loaded_mib: float
    memory_mib: float
    tokens: int
    tokens_per_second: float
    in_process_tokens_per_second: float
    ratio: float
    processor_ratio: float
    equal_lines: int
    lines: int

    def text(self) -> str:
        """Describes it for people."""
        return (
            f"{self.parameters:,} parameters: exported in {self.export_seconds:.1f} s, "
            f"{self.size_mib:,.0f} MiB; loaded in {self.load_seconds:.1f} s, first "
            f"batch {self.first_request_seconds:.1f} s; memory beside TensorFlow's own "
            f"{self.memory_loaded_mib:,.0f} MiB after it, {self.memory_mib:,.0f} at "
            f"most\n{self.tokens_per_second:,.0f} tokens/s, in process "
            f"{self.in_process_tokens_per_second:,.0f}: {self.ratio:.1%}, "
            f"by the processor's time {self.processor_ratio:.1%} "
            f"({self.equal_lines:,} of {self.lines:,} lines alike)"
        )


class Worker:
    """The process that has the export and nothing of this package.

    Args:
        version: the version's folder.
        batches: texts.
    """

    def __init__(self, version: Path, batches: Sequence[Sequence[str]]) -> None:
        # Shown if it fails; else it holds what TensorFlow logs while it starts.
        self._log = version.parent / "worker.log"
        with self._log.open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(WORKER), str(version)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.loaded = self._say(json.dumps(batches))

    def translate(self, batch: int) -> dict[str, Any]:
        """Translates a batch by its number; returns seconds and lines."""
        return self._say(str(batch))

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()

    def _say(self, line: str) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            self._process.wait()
            print(self._log.read_text(encoding="utf-8"), file=sys.stderr)
            raise UserError("the process that loads the export has failed; see above")
        found: dict[str, Any] = json.loads(answer)
        return found


def measure(
    model: Transformer,
    tokenizer: Tokenizer,
    hparams: HParams,
    batches: Sequence[Sequence[str]],
    rounds: int,
    folder: Path,
) -> Report:
    """Exports a model and measures it.

    Args:
        model: the model, already built.
        tokenizer: its vocabulary.
        hparams: which say how to search.
        batches: texts, at least one batch.
        rounds: how often both translate everything.
        folder: an empty folder for the export.
    """
    import numpy as np
    import tensorflow as tf

    from t2t_repro.models.variables import named_variables
    from t2t_repro.serving.saved_model import export
    from t2t_repro.serving.signatures import ServingModule
    from t2t_repro.translation.loading import search_of
    from t2t_repro.translation.translator import Translator

    search = search_of(hparams)
    started = time.monotonic()
    version = export(ServingModule([model], tokenizer, search), folder)
    exported = time.monotonic() - started
    translator = Translator(model, tokenizer, search)

    def translate(texts: Sequence[str]) -> tuple[np.ndarray, tf.Tensor]:
        ids, _ = translator.translate_ids(translator.encode(tf.constant(texts)))
        return translator.decode(ids[:, 0]).numpy(), ids[:, 0]

    translate(batches[0])
    worker = Worker(version, batches)
    here, there = np.zeros((2, rounds, len(batches)))
    processor = np.zeros(2)
    equal, tokens = 0, 0
    for turn, batch in itertools.product(range(rounds), range(len(batches))):
        started, used = time.monotonic(), time.process_time()
        texts, ids = translate(batches[batch])
        here[turn, batch] = time.monotonic() - started
        used = time.process_time() - used
        other = worker.translate(batch)
        there[turn, batch] = other["seconds"]
        processor += used, other["processor_seconds"]
        if turn == 0:
            lines = [text.decode() for text in texts]
            equal += sum(map(str.__eq__, lines, other["lines"]))
            tokens += int(tf.math.count_nonzero(ids))
    worker.close()
    own = worker.loaded["memory_before"]
    rates = [tokens / np.median(times, axis=0).sum() for times in (there, here)]
    return Report(
        parameters=sum(
            int(np.prod(variable.shape)) for variable in named_variables(model).values()
        ),
        export_seconds=exported,
        size_mib=sum(f.stat().st_size for f in version.rglob("*") if f.is_file())
        / _MEBIBYTE,
        load_seconds=worker.loaded["load_seconds"],
        first_request_seconds=worker.loaded["first_request_seconds"],
        memory_loaded_mib=(worker.loaded["memory_loaded"] - own) / _MEBIBYTE,
        memory_mib=(other["memory"] - own) / _MEBIBYTE,
        tokens=tokens,
        tokens_per_second=rates[0],
        in_process_tokens_per_second=rates[1],
        ratio=float(np.median(here / there)),
        processor_ratio=float(processor[0] / processor[1]),
        equal_lines=equal,
        lines=sum(map(len, batches)),
    )


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Exports a model, or random weights of a size, and measures the export."
    )
    parser.add_argument("--model_dir", help="folder of the model")
    parser.add_argument("--hparams", help="a set with overrides, for random weights")
    parser.add_argument("--vocab_file", help="the vocabulary for random weights")
    parser.add_argument("--source_file", required=True, help="sentences, one a line")
    parser.add_argument(
        "--lines", type=cli.at_least(1), default=128, help="to translate, the first"
    )
    parser.add_argument(
        "--batch_size", type=cli.at_least(1), default=32, help="sentences at once"
    )
    parser.add_argument(
        "--rounds", type=cli.at_least(1), default=3, help="the median counts"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, measures and prints."""
    args = _parser().parse_args(argv)
    if (args.model_dir is None) == (args.hparams is None):
        raise UserError("say either --model_dir or --hparams with --vocab_file")
    if args.hparams is not None and args.vocab_file is None:
        raise UserError("--hparams needs a vocabulary: say --vocab_file")
    lines = read_lines(args.source_file)[: args.lines]
    size = args.batch_size
    batches = [lines[n : n + size] for n in range(0, len(lines), size)]
    cli.start_tensorflow(args.verbose)
    model, tokenizer, hparams = _load(args)
    with tempfile.TemporaryDirectory() as folder:
        report = measure(
            model, tokenizer, hparams, batches, args.rounds, Path(folder) / "exported"
        )
    cli.print_result(report.text(), asdict(report), args.json)


def _load(args: Any) -> tuple[Transformer, Tokenizer, HParams]:
    """Loads a model, or draws one."""
    from t2t_repro import hparams as hparam_sets
    from t2t_repro.runs.model_dir import ModelDir, build_model
    from t2t_repro.tokenizers.load import load_tokenizer

    if args.model_dir is not None:
        directory = ModelDir(Path(args.model_dir))
        model = directory.model(directory.checkpoint())
        return model, directory.tokenizer(), directory.hparams()
    hparams = hparam_sets.load(args.hparams)
    tokenizer = load_tokenizer(args.vocab_file)
    return build_model(hparams, tokenizer.vocab_size), tokenizer, hparams


if __name__ == "__main__":
    cli.run(main)
