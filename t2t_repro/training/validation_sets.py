"""Named validation sets of a training, which are only logged (`train --validation`)."""

import re
from collections.abc import Sequence
from pathlib import Path

from t2t_repro import problems
from t2t_repro.problems.problem import Problem
from t2t_repro.runs.model_dir import VALIDATION_DIR, VALIDATION_SETS_FILE
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import UserError
from t2t_repro.training.metrics_log import MetricsLog

FLAG = "--validation"
VALIDATION, GUARD = "val", "guard"
"""Names of the validation split of the training and of the guard set."""

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_SEPARATORS = str.maketrans("\t\n\r", "   ")


def open_set(data: str, trained: Problem, data_dir: str | None) -> Problem:
    """Returns the problem of a further validation set.

    Args:
        data: Name of a problem, or folder as for the problem `files`.
        trained: Problem of the training, whose languages the set must have.
        data_dir: Folder of the data if `data` is the name of a problem.

    Raises:
        UserError: There is no such problem or folder, or its languages differ.
    """
    name, folder = (data, data_dir) if data in problems.names() else ("files", data)
    return problems.create(name, folder, trained.source_lang, trained.target_lang)


def parse_sets(
    text: str | None, trained: Problem, data_dir: str | None
) -> dict[str, Problem]:
    """Parses the value of the flag, `NAME=DATA,NAME=DATA`.

    Args:
        text: Value of the flag; None without it.
        trained: See `open_set`.
        data_dir: See `open_set`.

    Raises:
        UserError: The value is malformed, a name is given twice or reserved, a set
            cannot be read or is empty, or the training has no validation split.
    """
    if text is None:
        return {}
    if not trained.has("val"):
        raise UserError(
            f"{FLAG} adds to the validation text of the data, which have no val.* "
            f"files; add them, or omit {FLAG}"
        )
    sets: dict[str, Problem] = {}
    for part in text.split(","):
        name, sign, data = part.strip().partition("=")
        if not (sign and data and _NAME.fullmatch(name)):
            raise UserError(
                f"{FLAG}: {part!r} must be NAME=FOLDER, with a name of letters, "
                "digits, - and _"
            )
        if name in (VALIDATION, GUARD, *sets):
            raise UserError(
                f"{FLAG}: the name {name} is given twice or is that of another set; "
                "choose another name"
            )
        sets[name] = open_set(data, trained, data_dir)
        if next(iter(sets[name].pairs("val")), None) is None:
            raise UserError(f"{FLAG} {part}: the val split is empty")
    return sets


def keep_translations(
    model_dir: Path, name: str, pairs: Sequence[tuple[str, str]], texts: Sequence[str]
) -> None:
    """Writes the translations of a set to ``validation/NAME.tsv``.

    The columns are source, reference and translation.
    """
    rows = ((*pair, text) for pair, text in zip(pairs, texts, strict=True))
    lines = ("\t".join(each.translate(_SEPARATORS) for each in row) for row in rows)
    text = "".join(f"{line}\n" for line in lines)
    folder = model_dir / VALIDATION_DIR
    folder.mkdir(exist_ok=True)
    write_text_atomically(folder / f"{name}.tsv", text)


def log_scores(model_dir: Path, step: int, scores: dict[str, float]) -> None:
    """Appends the scores of named sets to ``validation_sets.tsv``.

    Rows of this and later steps are from before a resumption and are replaced.
    """
    table = MetricsLog(model_dir / VALIDATION_SETS_FILE, ("step", "set", "score"))
    table.cut(step - 1)
    for name, score in scores.items():
        table.add(str(step), name, f"{score:.6f}")
