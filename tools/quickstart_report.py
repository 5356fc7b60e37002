"""Translates sentences with an exported model, and writes quickstart's report.

It imports nothing of t2t_repro: what it does, any program that has TensorFlow and
tensorflow_text can do with the exported folder.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# The sentences that README and the first page of the docs show, and six longer ones,
# each with its only right translation.
PAIRS = {
    "half past four": "halb fünf",
    "seventeen euros": "siebzehn Euro",
    "half past nine on the nineteenth of May": "halb zehn am neunzehnten Mai",
    "the heavy table costs seventeen euros and forty-nine cents": (
        "der schwere Tisch kostet siebzehn Euro und neunundvierzig Cent"
    ),
    "the bus to Cologne leaves at eight minutes past eleven": (
        "der Bus nach Köln fährt um acht Minuten nach elf ab"
    ),
    "the farmer will pick up a box with five hundred and fifty shirts": (
        "der Bauer wird eine Kiste mit fünfhundertfünfzig Hemden abholen"
    ),
    "the beautiful book will cost two hundred euros": (
        "das schöne Buch wird zweihundert Euro kosten"
    ),
    "on the eighteenth of June the match ended": (
        "am achtzehnten Juni endete das Spiel"
    ),
}
# Short inputs that a visitor may type, one per line: English, then every German that is
# right, separated by tabs. The list measures; training never sees it.
VISITOR_INPUTS = Path(__file__).with_name("visitor_inputs.tsv")


def main(argv: Sequence[str] | None = None) -> None:
    """Translates, prints the report and writes it as JSON."""
    args = _parser().parse_args(argv)
    result = json.loads(args.result.read_text(encoding="utf-8"))
    accepted = visitor_inputs()
    sentences = [*PAIRS, *accepted]
    translations, seconds = translate(newest_version(args.export_dir), sentences)
    german = dict(zip(sentences, translations, strict=True))
    wrong_inputs = {en: german[en] for en in accepted if german[en] not in accepted[en]}
    report = {
        "test_bleu": result["bleu"],
        "signature": result["signature"],
        "sentences": result["sentences"],
        "seconds": round(args.seconds + seconds, 1),
        "train_seconds": args.train_seconds,
        "reused": args.reused,
        "translations": {source: german[source] for source in PAIRS},
        "wrong": [source for source in PAIRS if german[source] != PAIRS[source]],
        "visitor_inputs": len(accepted),
        "visitor_inputs_right": len(accepted) - len(wrong_inputs),
        "visitor_inputs_wrong": wrong_inputs,
    }
    write_atomically(args.report, json.dumps(report, ensure_ascii=False, indent=2))
    for source, translation in report["translations"].items():
        print(f"  {source}\n    -> {translation}")
        if source in report["wrong"]:
            print(f"    wrong: it should be {PAIRS[source]}")
    print(
        f"\nShort inputs that a visitor may type: {report['visitor_inputs_right']} of "
        f"{len(accepted)} right"
    )
    for source, translation in wrong_inputs.items():
        print(f"  wrong: {source} -> {translation}")
    print(
        f"BLEU on the test split: {report['test_bleu']:.2f} "
        f"({report['sentences']:,} sentences; {report['signature']})\n"
        f"This run took {report['seconds']:.0f} s (training: "
        f"{report['train_seconds']} s, when it was done). Report: {args.report}"
    )


def visitor_inputs() -> dict[str, list[str]]:
    """Returns the right translations of each of the visitor's inputs."""
    lines = VISITOR_INPUTS.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return {source: accepted for source, *accepted in rows}


def newest_version(export_dir: Path) -> Path:
    """Returns the newest SavedModel of an export; FileNotFoundError if none."""
    versions = [path for path in export_dir.iterdir() if path.name.isdecimal()]
    if not versions:
        raise FileNotFoundError(f"{export_dir} holds no exported version")
    return max(versions, key=lambda path: int(path.name))


def translate(model: Path, sentences: Sequence[str]) -> tuple[list[str], float]:
    """Translates with a SavedModel; returns translations and seconds, with loading."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    start = time.monotonic()
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  Registers the tokenizer's operations.

    loaded: Any = tf.saved_model.load(str(model))
    found = loaded.signatures["serving_default"](text=tf.constant(list(sentences)))
    translations = [text.decode("utf-8") for text in found["translations"].numpy()]
    return translations, time.monotonic() - start


def write_atomically(path: Path, text: str) -> None:
    """Writes a file that is either the old one or the whole new one."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text + "\n", encoding="utf-8")
    os.replace(temporary, path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    for flag, kind, text in (
        ("--export_dir", Path, "folder of exported versions"),
        ("--result", Path, "what train --json printed"),
        ("--train_seconds", int, "seconds the training took"),
        ("--seconds", float, "seconds of this run so far"),
        ("--report", Path, "the JSON file to write"),
    ):
        parser.add_argument(flag, type=kind, required=True, help=text)
    reused = "a part that an earlier run had made; may be repeated"
    parser.add_argument("--reused", action="append", default=[], help=reused)
    return parser


if __name__ == "__main__":
    main()
