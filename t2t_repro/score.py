"""Scores given translations by the probability that the model assigns to them.

It prints one line per sentence pair, in order: the log probability of the target
(natural logarithm), a tab, and the target's number of tokens, EOS included. The
perplexity per token follows on standard error. With --json each line is a JSON object;
the last one summarizes all pairs.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro.command_line import cli, model_flags
from t2t_repro.formats.pairs import iterate_side
from t2t_repro.runs.run_metadata import require_model
from t2t_repro.system.atomic_file import pair_lines

if TYPE_CHECKING:
    from t2t_repro.translation.pair_scores import PairScore


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(__doc__)
    model_flags.add_model_flags(parser, several=False)
    parser.add_argument(
        "--source_file",
        type=cli.path,
        required=True,
        help="sentences, one per line, or a file of pairs such as test.tmx",
    )
    parser.add_argument(
        "--target_file",
        type=cli.path,
        required=True,
        help="translations, one per line, or the same file of pairs",
    )
    parser.add_argument(
        "--per_token",
        action="store_true",
        help="also print each token and its log probability",
    )
    parser.add_argument(
        "--normalize",
        action="store_true",
        help="divide each log probability by the number of tokens",
    )
    parser.add_argument(
        "--tokens_per_batch",
        type=cli.int_range(1),
        default=2048,
        help="maximum number of positions per batch on each side, padding included",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, scores the pairs and prints the scores."""
    args = _parser().parse_args(argv)
    require_model(Path(args.model_dir))
    cli.start_models(args.verbose, args.no_fast)
    from tqdm import tqdm

    from t2t_repro.runs.model_dir import ModelDir
    from t2t_repro.translation.loading import load_models
    from t2t_repro.translation.pair_scores import CorpusScore, PairScorer

    metadata = ModelDir(Path(args.model_dir)).provenance()
    files = args.source_file, args.target_file
    languages = metadata.source_lang, metadata.target_lang
    _check(files, languages)
    loaded = load_models(args.model_dir, [args.checkpoint])
    scorer = PairScorer(loaded.models[0], loaded.tokenizer)
    corpus = CorpusScore()
    hidden = sys.stdout.isatty() or not sys.stderr.isatty()
    with tqdm(unit=" pairs", disable=hidden) as bar:
        for score in scorer.score_pairs(
            _read_pairs(files, languages, cli.log),
            per_token=args.per_token,
            tokens_per_batch=args.tokens_per_batch,
            progress=bar.update,
        ):
            corpus.add(score)
            write = _format_json if args.json else _format_text
            print(write(score, args.normalize))
    if args.json:
        print(json.dumps(corpus.to_dict() | {"checkpoint": loaded.checkpoints[0]}))
    else:
        cli.log(corpus.text())
    if corpus.cut:
        cli.log(
            f"cut to {scorer.max_input_length} subwords, EOS included: "
            f"{corpus.cut:,} of {corpus.pairs:,} source lines"
        )


def _check(files: tuple[str, str], languages: tuple[str, str]) -> None:
    """Reads regular files once, so that mistakes are reported before scoring starts."""
    if all(Path(file).is_file() for file in files):
        for _ in _read_pairs(files, languages):
            pass


def _read_pairs(
    files: tuple[str, str],
    languages: tuple[str, str],
    report: Callable[[str], None] | None = None,
) -> Iterator[tuple[str, str]]:
    """Yields the sources and targets of two files; `report`: see `iterate_side`."""
    sources = iterate_side(files[0], 0, languages, report=report)
    targets = iterate_side(files[1], 1, languages)
    return pair_lines(sources, targets, files)


def _format_text(score: "PairScore", normalize: bool) -> str:
    """Returns the score, the number of tokens and each token's score, tab-separated.

    Backslashes, tabs and carriage returns in the tokens are escaped.
    """
    columns = [f"{score.normalized if normalize else score.log_prob:.6f}"]
    columns.append(str(score.symbols))
    for text, log_prob in score.tokens:
        escaped = text.replace("\\", "\\\\").replace("\t", "\\t").replace("\r", "\\r")
        columns.append(f"{escaped}={log_prob:.6f}")
    return "\t".join(columns)


def _format_json(score: "PairScore", normalize: bool) -> str:
    values: dict[str, Any] = {"log_prob": score.log_prob, "symbols": score.symbols}
    if normalize:
        values["normalized"] = score.normalized
    if score.tokens:
        values["tokens"] = score.tokens
    return json.dumps(values, ensure_ascii=False)


if __name__ == "__main__":
    cli.run(main)
