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

TRAINING = "learning_rates"  # Array that only training cases have.
_CHECKPOINTS_OF = "_ckpt"  # CASE_ckpt/ holds the checkpoints of CASE.npz.
_READ_BY_OTHERS = (".md", ".txt", ".subwords")


def check_files(folder: Path) -> Iterator[Sheet]:
    """Checks the files of a folder and yields the sheet of each.

    Raises UserError if a file is damaged or of an unknown kind.
    """
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            yield from _check_checkpoints(path)
        elif path.suffix == ".npz":
            yield _check_file(path, _read_arrays(path))
        elif path.suffix == ".json":
            values = texts.columns(_read_json(path))
            yield _check_file(path, Sheet(path.name, values))
        elif path.suffix not in _READ_BY_OTHERS:
            raise UserError(f"{path}: unknown kind of file; remove it from the folder")


def _check_file(path: Path, sheet: Sheet) -> Sheet:
    """Checks a file by the first kind that its contents match."""
    for array, check in (
        ("logits", model_cases.check),
        (TRAINING, training_cases.check),
        ("lr/steps", tables.check),
        ("tables", search.check),
        ("compute_bleu_ids/bleu", texts.check_bleu),
        ("packed_length", texts.check_packing_and_trees),
        ("target_size", partial(texts.check_built_vocabulary, path.parent)),
        ("vocab", partial(texts.check_subwords, path.parent)),
        (parameters.SET, parameters.check),
    ):
        if array in sheet:
            check(sheet)
            return sheet
    raise UserError(
        f"{path}: the contents match no known kind of reference data; remove the file"
    )


def _check_checkpoints(folder: Path) -> Iterator[Sheet]:
    prefixes = sorted(path.with_suffix("") for path in folder.glob("*.index"))
    sheets = {p: checkpoints.read(p, f"{folder.name}/{p.name}") for p in prefixes}
    if not sheets:
        raise UserError(f"{folder}: no checkpoint found; copy the folder again")
    averaged = folder / checkpoints.AVERAGED
    case_file = folder.with_name(f"{folder.name.removesuffix(_CHECKPOINTS_OF)}.npz")
    if averaged in sheets:
        parts = [sheets[prefix] for prefix in prefixes if prefix != averaged]
        checkpoints.check_averaged(sheets[averaged], parts)
    elif folder.name.endswith(_CHECKPOINTS_OF) and case_file.exists():
        case = _read_arrays(case_file)
        for sheet in sheets.values():
            if TRAINING in case:
                checkpoints.check_training(sheet, case)
            else:
                checkpoints.check_weights(sheet, case)
    else:
        raise UserError(
            f"{folder}: the folder has neither an averaged checkpoint nor a case "
            "(CASE_ckpt belongs to CASE.npz)"
        )
    yield from sheets.values()


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
