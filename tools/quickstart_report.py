"""Translates sentences with an exported model and writes the quickstart's report.

The script does not import t2t_repro: any program with TensorFlow and tensorflow_text
can use an export in this way.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# The sentences in the README and on the first page of the documentation, and six longer
# ones. Each line has the English input and its only correct translation.
SENTENCES = Path(__file__).with_name("quickstart_sentences.tsv")
# Short inputs that a visitor may type, with all correct translations. The training data
# does not depend on this list.
VISITOR_INPUTS = Path(__file__).with_name("visitor_inputs.tsv")


def main(argv: Sequence[str] | None = None) -> None:
    """Translates the sentences, prints the report and writes it as JSON."""
    args = _parser().parse_args(argv)
    result = json.loads(args.result.read_text(encoding="utf-8"))
    shown, accepted = read(SENTENCES), read(VISITOR_INPUTS)
    sentences = [*shown, *accepted]
    translations, seconds = translate(newest_version(args.export_dir), sentences)
    german = dict(zip(sentences, translations, strict=True))
    wrong = [source for source in shown if german[source] not in shown[source]]
    wrong_inputs = {en: german[en] for en in accepted if german[en] not in accepted[en]}
    report = {
        "test_bleu": result["bleu"],
        "signature": result["signature"],
        "sentences": result["sentences"],
        "seconds": round(args.seconds + seconds, 1),
        "train_seconds": args.train_seconds,
        "reused": args.reused,
        "translations": {source: german[source] for source in shown},
        "wrong": wrong,
        "visitor_inputs": len(accepted),
        "visitor_inputs_right": len(accepted) - len(wrong_inputs),
        "visitor_inputs_wrong": wrong_inputs,
    }
    write_atomically(args.report, json.dumps(report, ensure_ascii=False, indent=2))
    for source, translation in report["translations"].items():
        print(f"  {source}\n    -> {translation}")
        if source in wrong:
            print(f"    wrong, expected: {shown[source][0]}")
    print(
        f"\nShort inputs that a visitor may type: {report['visitor_inputs_right']} of "
        f"{len(accepted)} correct"
    )
    for source, translation in wrong_inputs.items():
        print(f"  wrong: {source} -> {translation}")
    print(
        f"BLEU on the test split: {report['test_bleu']:.2f} "
        f"({report['sentences']:,} sentences; {report['signature']})\n"
        f"This run took {report['seconds']:.0f} s; training took "
        f"{report['train_seconds']} s. Report: {args.report}"
    )


def read(table: Path) -> dict[str, list[str]]:
    """Returns the correct translations of each input of a table."""
    rows = [line.split("\t") for line in table.read_text("utf-8").splitlines()]
    return {source: accepted for source, *accepted in rows}


def newest_version(export_dir: Path) -> Path:
    """Returns the newest SavedModel of an export.

    Raises FileNotFoundError without a version.
    """
    versions = [path for path in export_dir.iterdir() if path.name.isdecimal()]
    if not versions:
        raise FileNotFoundError(f"{export_dir} has no exported version")
    return max(versions, key=lambda path: int(path.name))


def translate(model: Path, sentences: Sequence[str]) -> tuple[list[str], float]:
    """Translates with a SavedModel.

    Returns the translations and the time in seconds, including loading.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    start = time.monotonic()
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  Registers the tokenizer's ops.

    loaded: Any = tf.saved_model.load(str(model))
    outputs = loaded.signatures["serving_default"](text=tf.constant(list(sentences)))
    translations = [text.decode("utf-8") for text in outputs["translations"].numpy()]
    return translations, time.monotonic() - start


def write_atomically(path: Path, text: str) -> None:
    """Writes a file to a temporary name and renames it."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text + "\n", encoding="utf-8")
    os.replace(temporary, path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    for flag, kind, text in (
        ("--export_dir", Path, "folder of exported versions"),
        ("--result", Path, "output of train --json"),
        ("--train_seconds", int, "training time in seconds"),
        ("--seconds", float, "time of this run so far in seconds"),
        ("--report", Path, "JSON file to write"),
    ):
        parser.add_argument(flag, type=kind, required=True, help=text)
    reused = "result reused from an earlier run; may be repeated"
    parser.add_argument("--reused", action="append", default=[], help=reused)
    return parser


if __name__ == "__main__":
    main()
