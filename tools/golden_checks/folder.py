"""Finds the kind of each file in a folder of reference data and checks the file."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from golden_checks import (
    checkpoints,
    model_cases,
    parameters,
    search,
    tables,
    texts,
    training_cases,
)
from golden_checks.sheet import Sheet
from t2t_repro.system.errors import UserError

_CHECKPOINTS_OF = "_ckpt"  # CASE_ckpt/ holds the checkpoints of CASE.npz.
_READ_BY_OTHERS = (".md", ".txt", ".subwords")


def checked(folder: Path) -> Iterator[Sheet]:
    """Checks the files of a folder and yields the sheet of each.

    Raises UserError if a file is damaged or of an unknown kind.
    """
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            yield from _checked_checkpoints(path)
        elif path.suffix == ".npz":
            yield _checked(path, _read_arrays(path))
        elif path.suffix == ".json":
            values = texts.columns(_read_json(path))
            yield _checked(path, Sheet(path.name, values))
        elif path.suffix not in _READ_BY_OTHERS:
            raise UserError(f"{path}: unknown kind of file; remove it from the folder")


def _checked(path: Path, sheet: Sheet) -> Sheet:
    """Checks a file by the first kind that its contents match."""
    for is_kind, check in (
        (model_cases.is_model_case, model_cases.check),
        (training_cases.is_training_case, training_cases.check),
        (tables.is_tables, tables.check),
        (search.is_search, search.check),
        (texts.is_bleu, texts.check_bleu),
        (texts.is_packing_and_trees, texts.check_packing_and_trees),
        (texts.is_built_vocabulary, partial(texts.check_built_vocabulary, path.parent)),
        (texts.is_subwords, partial(texts.check_subwords, path.parent)),
        (parameters.is_parameter_counts, parameters.check),
    ):
        if is_kind(sheet.arrays):
            check(sheet)
            return sheet
    raise UserError(
        f"{path}: the contents match no known kind of reference data; remove the file"
    )


def _checked_checkpoints(folder: Path) -> Iterator[Sheet]:
    prefixes = sorted(path.with_suffix("") for path in folder.glob("*.index"))
    sheets = {p: checkpoints.read(p, f"{folder.name}/{p.name}") for p in prefixes}
    if not sheets:
        raise UserError(f"{folder}: no checkpoint found; copy the folder again")
    averaged = [prefix for prefix in prefixes if prefix.name == checkpoints.AVERAGED]
    if averaged:
        parts = [sheets[prefix] for prefix in prefixes if prefix not in averaged]
        for prefix in averaged:
            checkpoints.check_averaged(sheets[prefix], parts)
    else:
        case = _read_arrays(folder.parent / f"{_case_of(folder)}.npz")
        check = (
            checkpoints.check_training
            if training_cases.is_training_case(case.arrays)
            else checkpoints.check_weights
        )
        for sheet in sheets.values():
            check(sheet, case)
    yield from sheets.values()


def _case_of(folder: Path) -> str:
    """Returns the name of a checkpoint folder's case."""
    name = folder.name.removesuffix(_CHECKPOINTS_OF)
    if name == folder.name or not (folder.parent / f"{name}.npz").exists():
        raise UserError(
            f"{folder}: the folder has neither an averaged checkpoint nor a case "
            "(CASE_ckpt belongs to CASE.npz)"
        )
    return name


def _read_arrays(path: Path) -> Sheet:
    try:
        with np.load(path, allow_pickle=False) as file:
            return Sheet(path.name, {name: file[name] for name in file.files})
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{path}: damaged ({error}); copy it again") from None


def _read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON object; returns {} for other values, which match no kind."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error}); copy it again") from None
    return values if isinstance(values, dict) else {}
