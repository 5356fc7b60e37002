"""Translates the lines of standard input with a LiteRT export.

Each export contains a copy of this file. It requires only Python 3.10, `numpy`,
`ai-edge-litert`, and `sentencepiece` if the vocabulary is of SentencePiece or Marian:

    pip install numpy ai-edge-litert sentencepiece
    python exported/1/litert_client.py < text.en > text.de

In a program:

    translator = LiteRTTranslator("exported/1")
    print(translator.translate("half past four"))

It translates one sentence at a time, with greedy search if the beam size is 1. The
translations equal those of t2t_repro with tensor2tensor's or Marian's search.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

if __package__:
    from t2t_repro.tokenizers import plain_tokenizer
else:
    import plain_tokenizer  # type: ignore[import-not-found, no-redef]

MODEL, SETTINGS = "model.tflite", "search.json"
EOS_ID = plain_tokenizer.EOS_ID
_THREADS = min(4, os.cpu_count() or 1)

Step = Callable[[np.ndarray, list[int]], np.ndarray]
"""Computes the log probabilities of the next tokens, float32 (beam, V).

Arguments: the last tokens, int32 (beam,), and the parents: the index of the hypothesis
of the previous step that each hypothesis continues.
"""


class Hypothesis(NamedTuple):
    """A finished hypothesis.

    Attributes:
        score: Log probability divided by the length penalty.
        ids: Tokens, with EOS unless the hypothesis was cut at the limit.
    """

    score: float
    ids: list[int]


class LiteRTTranslator:
    """Translates sentences.

    Args:
        folder: Folder of the export.
        interpreter: LiteRT's interpreter with the model; None creates one.

    Raises:
        OSError: A file of the export is missing.
        ValueError: A file is damaged, or of another export.
    """

    def __init__(self, folder: str | os.PathLike[str], interpreter: Any = None) -> None:
        folder = Path(folder)
        if interpreter is None:
            from ai_edge_litert.interpreter import Interpreter

            interpreter = Interpreter(str(folder / MODEL), num_threads=_THREADS)
        self._tokenizer = plain_tokenizer.load(folder)
        self._settings = _read_settings(folder / SETTINGS)
        self._encode = interpreter.get_signature_runner("encode")
        self._step = interpreter.get_signature_runner("step")
        shapes = self._step.get_input_details()
        self._caches = {
            name: np.zeros(shapes[name]["shape"], np.float32)
            for name in ("self_keys", "self_values")
        }
        self._beam = int(shapes["ids"]["shape"][0])
        self.max_input_length = len(self._settings["limits"]) - 1
        inputs = self._encode.get_input_details()["inputs"]["shape"]
        outputs = self._step.get_output_details()["log_probs"]["shape"]
        sizes = [*map(int, (*self._tokenizer.sizes, *inputs, *outputs))]
        # Earlier exports do not record their sizes.
        if sizes != self._settings.get("sizes", sizes):
            raise ValueError(
                f"{folder}: {MODEL}, {SETTINGS} and the vocabulary are of different "
                "exports"
            )

    def translate(self, text: str) -> str:
        """Returns the translation of a sentence; "" for a blank one.

        Lines on standard error report labels that select no language and, as in
        `translate_ids`, subwords that are not read.
        """
        if note := self._tokenizer.note(text):
            print(note, file=sys.stderr)
        ids = self._tokenizer.encode(text)
        if len(ids) == 1:
            return ""
        return self._tokenizer.decode(self.translate_ids(ids).ids)

    def translate_ids(self, ids: Sequence[int]) -> Hypothesis:
        """Translates the ids of a sentence, EOS included.

        A line on standard error reports a sentence that is cut.
        """
        longest = self.max_input_length
        if len(ids) > longest:
            print(f"cut a line of {len(ids)} to {longest} subwords", file=sys.stderr)
            ids = [*ids[: longest - 1], EOS_ID]
        inputs = np.zeros([1, longest], np.int32)
        inputs[0, : len(ids)] = ids
        memory, caches, index = self._encode(inputs=inputs), self._caches, 0

        def step(last: np.ndarray, parents: list[int]) -> np.ndarray:
            nonlocal caches, index
            moved = {name: each[:, parents] for name, each in caches.items()}
            position = np.array([index], np.int32)
            outputs = self._step(ids=last, index=position, **moved, **memory)
            caches = {name: outputs[f"new_{name}"] for name in caches}
            index += 1
            log_probs: np.ndarray = outputs["log_probs"]
            return log_probs

        limit = self._settings["limits"][len(ids)]
        return beam_search(step, self._beam, limit, self._settings)


def _read_settings(path: Path) -> dict[str, Any]:
    """Returns the settings of the search; raises ValueError if they are damaged."""
    try:
        settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(settings["limits"], list):
            return settings
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    raise ValueError(f"{path} is damaged; export the model again")


def beam_search(
    step: Step, beam: int, limit: int, settings: dict[str, Any]
) -> Hypothesis:
    """Returns the best hypothesis of tensor2tensor's or Marian's beam search.

    Args:
        step: Step function of the model.
        beam: Beam size; 1 is greedy search.
        limit: Maximum number of tokens, EOS included.
        settings: ``algorithm`` ("t2t" or "marian"), ``alpha``, ``word_penalty``, and
            ``never``, the ids that are never produced.
    """
    is_marian = settings["algorithm"] == "marian"
    alpha, word_penalty = settings["alpha"], settings["word_penalty"]

    def penalty(length: int) -> float:
        return float(length if is_marian else (5 + length) / 6) ** alpha

    def score(log_prob: float, length: int) -> float:
        return (log_prob - word_penalty * length) / penalty(length)

    # Up to `beam` of the best continuations may end.
    count = beam if is_marian or beam == 1 else 2 * beam
    hypotheses: list[list[int]] = [[]] * beam
    log_probs = np.array([0.0] + [-np.inf] * (beam - 1), np.float32)
    last, parents = np.zeros(beam, np.int32), [*range(beam)]
    finished: list[Hypothesis] = []
    for length in range(1, limit + 1):
        totals = log_probs[:, None] + step(last, parents)
        totals[:, settings["never"]] = -np.inf
        # In Marian's search, each finished hypothesis reduces the beam.
        places = beam - len(finished) if is_marian else count
        alive: list[tuple[float, int, list[int]]] = []
        for log_prob, parent, token in _best(totals, count)[:places]:
            ids = [*hypotheses[parent], token]
            if token == EOS_ID or (is_marian and length == limit):
                finished.append(Hypothesis(score(log_prob, length), ids))
            if token != EOS_ID and len(alive) < beam:
                alive.append((log_prob, parent, ids))
        finished = sorted(finished, key=lambda each: -each.score)[:beam]
        if length == limit or not alive:
            break
        # Longer hypotheses cannot have a higher score, unless tokens are rewarded.
        reachable = alive[0][0] / penalty(limit)
        if finished and finished[0].score >= reachable and not word_penalty:
            break
        missing = beam - len(alive)
        alive += [(-np.inf, 0, alive[0][2])] * missing
        log_probs = np.array([each[0] for each in alive], np.float32)
        parents = [each[1] for each in alive]
        hypotheses = [each[2] for each in alive]
        last = np.array([ids[-1] for ids in hypotheses], np.int32)
    if finished:
        return finished[0]
    return Hypothesis(score(alive[0][0], length), alive[0][2])


def _best(totals: np.ndarray, count: int) -> list[tuple[float, int, int]]:
    """Returns the largest elements of (beam, V), best first: value, row and column."""
    flat = totals.ravel()
    chosen = np.argpartition(flat, -count)[-count:]
    chosen = chosen[np.lexsort((chosen, -flat[chosen]))]
    rows, columns = np.unravel_index(chosen, totals.shape)
    rows_of = zip(flat[chosen], rows, columns, strict=True)
    return [(float(v), int(r), int(c)) for v, r, c in rows_of if v > -np.inf]


def main() -> None:
    """Translates standard input line by line; the only flag is --help."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    try:
        translator = LiteRTTranslator(Path(__file__).parent)
    except ImportError as error:
        name = str(error.name).partition(".")[0].replace("_", "-")
        sys.exit(f"error: {name} is not installed; run pip install {name}")
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")
    for stream, encoding in ((sys.stdin, "utf-8-sig"), (sys.stdout, "utf-8")):
        # Only LF ends a line.
        stream.reconfigure(  # type: ignore[union-attr]
            encoding=encoding, errors="replace", newline="\n"
        )
    for line in sys.stdin:
        text = line.removesuffix("\n").removesuffix("\r")
        print(translator.translate(text), flush=True)


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(130)
