"""Draws figures of the paper's design choices and prints the numbers in them.

    python tools/plot_lessons.py --output_dir figures
    python tools/plot_lessons.py --only heads --model_dir M \
        --source_file test.en --reference_file test.de --output_dir figures
    python tools/plot_lessons.py --only norm_order --data_dir data --output_dir figures

The first command draws six figures, as PNG and SVG, in seconds. `heads` and
`norm_order` take longer and must be selected. The figures require Matplotlib (`pip
install t2t_repro[figures]`).
"""

import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import say
from figures import style

from t2t_repro.command_line import cli
from t2t_repro.system.atomic_file import iterate_pairs
from t2t_repro.system.errors import UserError

QUICK = ("positions", "order", "scaling", "schedule", "masks", "norms")
NAMED = ("heads", "norm_order")


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Draws figures of the paper's design choices and prints the numbers in them."
    )
    add = parser.add_argument
    add("--output_dir", required=True, help="folder for the figures")
    only = f"figure to draw (default: {', '.join(QUICK)})"
    add("--only", choices=(*QUICK, *NAMED), help=only)
    add = parser.add_argument_group("heads: silences one head at a time").add_argument
    add("--model_dir", help="model directory of a trained model")
    checkpoint = "averaged, latest, best, or the folder of a checkpoint"
    add("--checkpoint", default="best", help=checkpoint)
    add("--source_file", help="file with one sentence per line")
    add("--reference_file", help="file with the reference translations")
    lines = "number of sentences to translate"
    add("--lines", type=cli.at_least(1), default=200, help=lines)
    group = "norm_order: trains four small models"
    add = parser.add_argument_group(group).add_argument
    add("--data_dir", default="data", help="folder for the prepared built-in corpus")
    add("--steps", type=cli.at_least(20), default=400, help="steps of each run")
    add("--seed", type=cli.at_least(0), default=1, help="random seed of the runs")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, draws the figures and prints their numbers."""
    args = _parser().parse_args(argv)
    folder, pairs = style.checked_folder(args.output_dir), _checked(args)
    cli.start_tensorflow(args.verbose)

    result: dict[str, Any] = {}
    for name in [args.only] if args.only else QUICK:
        with style.styled():
            figure, facts = _drawn(name, args, pairs)
            folder.mkdir(parents=True, exist_ok=True)
            files = style.save(figure, folder, name)
        result[name] = {"files": [str(path) for path in files], "numbers": facts}
    lines = [
        f"{name}: {' '.join(each['files'])}\n  {json.dumps(each['numbers'])}"
        for name, each in result.items()
    ]
    cli.print_result("\n".join(lines), result, args.json)


def _checked(args: Any) -> list[tuple[str, str]]:
    """Checks the flags and returns the sentence pairs to translate.

    Raises UserError if a flag is missing or wrong.
    """
    if args.only != "heads":
        return []
    for name in ("model_dir", "source_file", "reference_file"):
        if getattr(args, name) is None:
            raise UserError(f"--only heads requires --{name}")
    return list(iterate_pairs(args.source_file, args.reference_file))[: args.lines]


def _drawn(name: str, args: Any, pairs: list[tuple[str, str]]) -> style.Drawn:
    """Draws a figure; returns it and the numbers in it."""
    module = importlib.import_module(f"figures.{name}")
    if name == "heads":
        return _heads(module, args, pairs)
    arguments = (Path(args.data_dir), args.steps, args.seed, say)
    result: style.Drawn = module.draw(*arguments if name == "norm_order" else ())
    return result


def _heads(module: Any, args: Any, pairs: list[tuple[str, str]]) -> style.Drawn:
    """Draws the figure of `figures.heads` for a trained model."""
    from t2t_repro.runs.model_dir import ModelDir
    from t2t_repro.translation.loading import search_of
    from t2t_repro.translation.parallel_batches import give_each_batch_a_core
    from t2t_repro.translation.translator import Translator

    give_each_batch_a_core()
    directory = ModelDir(Path(args.model_dir))
    model = directory.model(directory.checkpoint(args.checkpoint))
    tokenizer = directory.tokenizer()
    search = search_of(directory.hparams(), tokenizer)
    translator = Translator(model, tokenizer, search)
    sources, references = zip(*pairs, strict=True)
    bleu = module.scorer(translator, sources, references)
    figure, facts = module.draw(model, bleu, say)
    return figure, facts | {"lines": len(pairs), "beam_size": search.beam_size}


if __name__ == "__main__":
    cli.run(main)
