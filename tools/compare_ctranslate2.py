"""Compares translations and probabilities of a model here and in CTranslate2.

    python tools/compare_ctranslate2.py --model_dir M --source_file text.en

exports the model for CTranslate2 into a folder of its own, and compares for every
line, without length penalty on either side: the log probability of every token of the
translations (forced decoding), greedy search, and beam search for translations of at
least one subword. (Without a length penalty the most probable translation is often
empty; CTranslate2 forbids that unless told otherwise.) Every line that differs is
printed with the gap between the two translations' log probabilities, both by the
model here. `pip install t2t_repro[ctranslate2]` brings CTranslate2.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro.command_line import cli
from t2t_repro.system.text_files import read_lines

if TYPE_CHECKING:
    from t2t_repro.models.transformer import Transformer
    from t2t_repro.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True)
class Difference:
    """A line that is translated otherwise.

    Attributes:
        line: its number, from 1.
        ours: the translation here.
        theirs: CTranslate2's.
        gap: log probability of ours less that of theirs, by the model here.
    """

    line: int
    ours: str
    theirs: str
    gap: float


@dataclass(frozen=True)
class Comparison:
    """What one search found.

    Attributes:
        beam_size: hypotheses per sentence.
        lines: how many were translated.
        equal: how many token by token alike.
        differences: the others.
    """

    beam_size: int
    lines: int
    equal: int
    differences: list[Difference]


class Comparer:
    """Both programs with one model.

    Args:
        model: the model, already built.
        tokenizer: its vocabulary.
        folder: an empty folder for CTranslate2's files.
        lines: what is translated; blank lines are left out.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        folder: Path,
        lines: Sequence[str],
    ) -> None:
        import ctranslate2
        import tensorflow as tf

        from t2t_repro.interop.ctranslate2 import write_ctranslate2
        from t2t_repro.tokenizers.piece_names import piece_names
        from t2t_repro.translation.pair_scores import PairScorer
        from t2t_repro.translation.translator import MAX_INPUT_LENGTH

        write_ctranslate2(model, tokenizer, folder)
        self._model, self._tokenizer = model, tokenizer
        self._theirs = ctranslate2.Translator(str(folder))
        self._names = piece_names(tokenizer)
        self._scorer = PairScorer(model, tokenizer)
        numbered = [(n, line) for n, line in enumerate(lines, 1) if line.strip()]
        self._numbers = [n for n, _ in numbered]
        rows = tokenizer.encode(tf.constant([line for _, line in numbered])).to_list()
        # Ids without EOS.
        self._sources = [row[:-1][: MAX_INPUT_LENGTH - 1] for row in rows]

    def search(self, beam_size: int, extra_length: int) -> Comparison:
        """Translates every line in both."""
        from t2t_repro.decoding.search import Search
        from t2t_repro.translation.translator import Translator

        # One subword and EOS; without a length penalty nothing at all is often best.
        search = Search(beam_size, alpha=0.0, extra_length=extra_length, min_length=2)
        translator = Translator(self._model, self._tokenizer, search)
        ours = self._ours(translator)
        theirs = self._translated(beam_size, extra_length)
        differing = [
            n
            for n, pair in enumerate(zip(ours, theirs, strict=True))
            if pair[0] != pair[1]
        ]
        gaps = self._gaps(differing, ours, theirs)
        return Comparison(
            beam_size,
            len(ours),
            len(ours) - len(differing),
            [
                Difference(
                    self._numbers[n], self._text(ours[n]), self._text(theirs[n]), gap
                )
                for n, gap in zip(differing, gaps, strict=True)
            ],
        )

    def forced(self, beam_size: int, extra_length: int) -> tuple[int, float]:
        """Scores CTranslate2's own translations in both.

        Returns:
            How many tokens were compared, EOS included, and the largest difference of
            a token's log probability, nats.
        """
        import numpy as np

        targets = self._translated(beam_size, extra_length)
        found = self._theirs.score_batch(
            list(map(self._pieces, self._sources)), list(map(self._pieces, targets))
        )
        ours = self._log_probs(range(len(targets)), targets)
        worst, tokens = 0.0, 0
        for mine, score in zip(ours, found, strict=True):
            worst = max(worst, float(np.abs(mine - np.array(score.log_probs)).max()))
            tokens += len(mine)
        return tokens, worst

    def _ours(self, translator: Any) -> list[list[int]]:
        """Translates here: ids without EOS."""
        import numpy as np
        import tensorflow as tf

        order = np.argsort([-len(row) for row in self._sources], kind="stable")
        found: list[list[int]] = [[]] * len(order)
        groups = [order[n : n + 32] for n in range(0, len(order), 32)]
        batches = (
            tf.ragged.constant(
                [[*self._sources[n], 1] for n in group], dtype=tf.int32
            ).to_tensor()
            for group in groups
        )
        for group, (ids, _) in zip(
            groups, translator.translate_batches(batches), strict=True
        ):
            for n, row in zip(group, ids[:, 0].numpy(), strict=True):
                found[n] = [int(symbol) for symbol in row if symbol > 1]
        return found

    def _translated(self, beam_size: int, extra_length: int) -> list[list[int]]:
        """Translates in CTranslate2: ids without EOS."""
        numbers = {name: number for number, name in enumerate(self._names)}
        found: list[list[int]] = [[]] * len(self._sources)
        # There a limit is one for all sentences of a call, here each has its own.
        for length in sorted(set(map(len, self._sources))):
            places = [n for n, row in enumerate(self._sources) if len(row) == length]
            results = self._theirs.translate_batch(
                [self._pieces(self._sources[n]) for n in places],
                beam_size=beam_size,
                length_penalty=0,
                min_decoding_length=1,
                max_batch_size=32,
                max_decoding_length=length + 1 + extra_length,
            )
            for n, result in zip(places, results, strict=True):
                found[n] = [numbers[name] for name in result.hypotheses[0]]
        return found

    def _gaps(
        self,
        places: Sequence[int],
        ours: Sequence[Sequence[int]],
        theirs: Sequence[Sequence[int]],
    ) -> list[float]:
        """Returns how much more probable ours are."""
        mine = self._log_probs(places, [ours[n] for n in places])
        others = self._log_probs(places, [theirs[n] for n in places])
        return [
            float(one.sum() - other.sum())
            for one, other in zip(mine, others, strict=True)
        ]

    def _log_probs(
        self, places: Sequence[int], targets: Sequence[Sequence[int]]
    ) -> list[Any]:
        """Returns the log probability of each symbol and EOS, by the model here."""
        from t2t_repro.batches.pair_batches import pair_batches

        sources = [[*self._sources[n], 1] for n in places]
        ended = [[*target, 1] for target in targets]
        found: list[Any] = [None] * len(ended)
        for rows, batch in pair_batches(sources, ended, 2048):
            log_probs = self._scorer.log_probs(batch["inputs"], batch["targets"])
            for n, values in zip(rows, log_probs.numpy(), strict=True):
                found[n] = values[: len(ended[n])]
        return found

    def _pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._names[number] for number in ids]

    def _text(self, ids: Sequence[int]) -> str:
        import tensorflow as tf

        found: str = (
            self._tokenizer.decode(tf.constant([ids], tf.int32))[0].numpy().decode()
        )
        return found


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Translates a file here and in CTranslate2, without length penalty, and "
        "prints what differs."
    )
    parser.add_argument("--model_dir", required=True, help="folder of the model")
    parser.add_argument(
        "--checkpoint", default="best", help="averaged, latest, best, or a folder"
    )
    parser.add_argument("--source_file", required=True, help="text, a sentence a line")
    parser.add_argument(
        "--beam_sizes", default="1,4", help="searches to compare, with commas between"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, compares and prints what differs."""
    args = _parser().parse_args(argv)
    lines = read_lines(args.source_file)
    cli.start_tensorflow(args.verbose)
    from t2t_repro.runs.model_dir import ModelDir
    from t2t_repro.translation.side_by_side import give_each_batch_a_core

    give_each_batch_a_core()
    directory = ModelDir(Path(args.model_dir))
    extra = directory.hparams().decode_extra_length
    model = directory.model(directory.checkpoint(args.checkpoint))
    with tempfile.TemporaryDirectory() as folder:
        comparer = Comparer(model, directory.tokenizer(), Path(folder), lines)
        tokens, worst = comparer.forced(4, extra)
        searches = [
            comparer.search(int(size), extra) for size in args.beam_sizes.split(",")
        ]
    values = {
        "tokens": tokens,
        "largest_token_difference": worst,
        "searches": [asdict(search) for search in searches],
    }
    cli.print_result(_text(tokens, worst, searches), values, args.json)


def _text(tokens: int, worst: float, searches: Sequence[Comparison]) -> str:
    """Describes the comparison for people."""
    lines = [f"{tokens:,} tokens, largest difference of a log probability {worst:.2e}"]
    for search in searches:
        lines.append(
            f"beam {search.beam_size}: {search.equal:,} of {search.lines:,} lines equal"
        )
        for each in search.differences:
            lines.append(f"  line {each.line:,}, gap {each.gap:+.6f}")
            lines.append(f"    here  {json.dumps(each.ours, ensure_ascii=False)}")
            lines.append(f"    there {json.dumps(each.theirs, ensure_ascii=False)}")
    return "\n".join(lines)


if __name__ == "__main__":
    cli.run(main)
