"""Compares translations and probabilities of a model here and in CTranslate2.

    python tools/compare_ctranslate2.py --model_dir M --source_file text.en

Compares for every line, without length penalty: the log probability of every token of
the translations (forced decoding), greedy search, and beam search for at least one
subword (without a length penalty the most probable translation is often empty;
CTranslate2 forbids that by default). Lines that differ are printed with the gap between
the two log probabilities, both by the model here. `pip install t2t_repro[ctranslate2]`
brings CTranslate2.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flags import several

from t2t_repro.command_line import cli
from t2t_repro.system.atomic_file import read_lines

if TYPE_CHECKING:
    from t2t_repro.models.transformer import Transformer
    from t2t_repro.tokenizers.tokenizer import Tokenizer

Ids = Sequence[int]


class Comparer:
    """Both programs with one built model; ids are without EOS.

    CTranslate2's files go into the empty `folder`; blank lines are left out; a
    translation may be `extra_length` subwords longer than its source.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        folder: Path,
        lines: Sequence[str],
        extra_length: int,
    ) -> None:
        import ctranslate2
        import tensorflow as tf

        from t2t_repro.interop.ctranslate2 import write_ctranslate2
        from t2t_repro.translation.pair_scores import PairScorer
        from t2t_repro.translation.translator import MAX_INPUT_LENGTH

        write_ctranslate2(model, tokenizer, folder)
        self._model, self._tokenizer = model, tokenizer
        self._extra_length = extra_length
        self._theirs = ctranslate2.Translator(str(folder))
        self._names = tokenizer.pieces
        self._scorer = PairScorer(model, tokenizer)
        numbered = [(n, line) for n, line in enumerate(lines, 1) if line.strip()]
        self._numbers = [n for n, _ in numbered]
        rows = tokenizer.encode(tf.constant([line for _, line in numbered])).to_list()
        self._sources = [row[:-1][: MAX_INPUT_LENGTH - 1] for row in rows]

    def search(self, beam_size: int) -> dict[str, Any]:
        """Translates every line in both.

        Returns `beam_size`; how many `lines` there are and how many are `equal` token
        by token; and `differences`: the number of the `line`, from 1, `ours` and
        `theirs`, and the `gap`: the log probability of ours less that of theirs, by the
        model here.
        """
        ours, theirs = self._ours(beam_size), self._translated(beam_size)
        pairs = enumerate(zip(ours, theirs, strict=True))
        places = [n for n, (mine, other) in pairs if mine != other]
        probabilities = (
            [float(found.sum()) for found in self._log_probs(places, rows)]
            for rows in (ours, theirs)
        )
        return {
            "beam_size": beam_size,
            "lines": len(ours),
            "equal": len(ours) - len(places),
            "differences": [
                {
                    "line": self._numbers[n],
                    "ours": self._text(ours[n]),
                    "theirs": self._text(theirs[n]),
                    "gap": mine - other,
                }
                for n, mine, other in zip(places, *probabilities, strict=True)
            ],
        }

    def forced(self, beam_size: int) -> tuple[int, float]:
        """Scores CTranslate2's own translations in both.

        Returns the number of tokens, EOS included, and the largest difference of a
        token's log probability, nats.
        """
        import numpy as np

        targets = self._translated(beam_size)
        found = self._theirs.score_batch(
            list(map(self._pieces, self._sources)), list(map(self._pieces, targets))
        )
        ours = np.concatenate(self._log_probs(range(len(targets)), targets))
        theirs = np.concatenate([score.log_probs for score in found])
        return len(ours), float(np.abs(ours - theirs).max(initial=0))

    def _ours(self, beam_size: int) -> list[Ids]:
        """Translates here."""
        import numpy as np
        import tensorflow as tf

        from t2t_repro.decoding.config import DecodingConfig
        from t2t_repro.translation.translator import Translator

        # One subword and EOS; without a length penalty nothing at all is often best.
        search = DecodingConfig(
            beam_size, alpha=0.0, extra_length=self._extra_length, min_length=2
        )
        translator = Translator(self._model, self._tokenizer, search)
        order = np.argsort([-len(row) for row in self._sources], kind="stable")
        found: list[Ids] = [[]] * len(order)
        groups = [order[n : n + 32] for n in range(0, len(order), 32)]
        batches = (
            tf.ragged.constant(
                [[*self._sources[n], 1] for n in group], dtype=tf.int32
            ).to_tensor()
            for group in groups
        )
        translated = translator.translate_batches(batches)
        for group, (ids, _) in zip(groups, translated, strict=True):
            for n, row in zip(group, ids[:, 0].numpy(), strict=True):
                found[n] = [int(symbol) for symbol in row if symbol > 1]
        return found

    def _translated(self, beam_size: int) -> list[Ids]:
        """Translates in CTranslate2."""
        numbers = {name: number for number, name in enumerate(self._names)}
        found: list[Ids] = [[]] * len(self._sources)
        # There a limit is one for all sentences of a call, here each has its own.
        for length in sorted(set(map(len, self._sources))):
            places = [n for n, row in enumerate(self._sources) if len(row) == length]
            results = self._theirs.translate_batch(
                [self._pieces(self._sources[n]) for n in places],
                beam_size=beam_size,
                length_penalty=0,
                min_decoding_length=1,
                max_batch_size=32,
                max_decoding_length=length + 1 + self._extra_length,
            )
            for n, result in zip(places, results, strict=True):
                found[n] = [numbers[name] for name in result.hypotheses[0]]
        return found

    def _log_probs(self, places: Iterable[int], targets: Sequence[Ids]) -> list[Any]:
        """Returns of the translations of some sources what each symbol and EOS has."""
        from t2t_repro.batches.pair_batches import pair_batches

        sources, ended = (
            [[*rows[n], 1] for n in places] for rows in (self._sources, targets)
        )
        found: list[Any] = [None] * len(ended)
        for rows, batch in pair_batches(sources, ended, 2048):
            log_probs = self._scorer.log_probs(batch["inputs"], batch["targets"])
            for n, values in zip(rows, log_probs.numpy(), strict=True):
                found[n] = values[: len(ended[n])]
        return found

    def _pieces(self, ids: Ids) -> list[str]:
        return [self._names[number] for number in ids]

    def _text(self, ids: Ids) -> str:
        import tensorflow as tf

        decoded = self._tokenizer.decode(tf.constant([ids], tf.int32))
        return str(decoded[0].numpy().decode())


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Translates a file here and in CTranslate2, without length penalty, and "
        "prints what differs."
    )
    add = parser.add_argument
    add("--model_dir", required=True, help="folder of the model")
    add("--checkpoint", default="best", help="averaged, latest, best, or a folder")
    add("--source_file", required=True, help="text, a sentence a line")
    add(
        "--beam_sizes",
        type=several(cli.at_least(1)),
        default="1,4",
        help="searches to compare, with commas between",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, compares and prints what differs."""
    args = _parser().parse_args(argv)
    lines = read_lines(args.source_file)
    cli.start_tensorflow(args.verbose)
    from t2t_repro.runs.model_dir import ModelDir
    from t2t_repro.translation.parallel_batches import give_each_batch_a_core

    give_each_batch_a_core()
    directory = ModelDir(Path(args.model_dir))
    extra = directory.hparams().decode_extra_length
    model = directory.model(directory.checkpoint(args.checkpoint))
    with tempfile.TemporaryDirectory() as folder:
        comparer = Comparer(model, directory.tokenizer(), Path(folder), lines, extra)
        tokens, worst = comparer.forced(4)
        values = {
            "tokens": tokens,
            "largest_token_difference": worst,
            "searches": [comparer.search(size) for size in args.beam_sizes],
        }
    cli.print_result(_text(values), values, args.json)


def _text(values: dict[str, Any]) -> str:
    """Describes the comparison for people."""
    worst = values["largest_token_difference"]
    lines = [
        f"{values['tokens']:,} tokens, largest difference of a log probability "
        f"{worst:.2e}"
    ]
    for search in values["searches"]:
        lines.append(
            f"beam {search['beam_size']}: {search['equal']:,} of {search['lines']:,} "
            "lines equal"
        )
        for each in search["differences"]:
            lines += [
                f"  line {each['line']:,}, gap {each['gap']:+.6f}",
                f"    here  {json.dumps(each['ours'], ensure_ascii=False)}",
                f"    there {json.dumps(each['theirs'], ensure_ascii=False)}",
            ]
    return "\n".join(lines)


if __name__ == "__main__":
    cli.run(main)
