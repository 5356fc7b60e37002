"""Every import, from a function that reads a model to its model directory."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from t2t_repro.interop.import_report import ImportReport
from t2t_repro.interop.source import Source
from t2t_repro.models.variables import named_variables
from t2t_repro.runs import checkpoints
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.runs.run_metadata import RunMetadata
from t2t_repro.system.atomic_dir import put_in_place
from t2t_repro.system.errors import UserError
from t2t_repro.system.locks import exclusive_lock

_LANGUAGES = ("en", "de")


def import_model(
    read: Callable[[], Source],
    model_dir: Path,
    languages: tuple[str | None, str | None] = (None, None),
) -> ImportReport:
    """Makes a model directory, whole or not at all, of another program's model.

    Everything is read and checked before anything is written.

    Args:
        read: Reads and checks the model.
        model_dir: Folder to make; absent or empty.
        languages: Languages of source and target; None: those of the files, or English
            and German.

    Raises:
        UserError: The folder cannot be written, is in use or not empty, or `read`
            refuses the model.
    """
    _refuse_to_replace(model_dir)
    source = read()
    built = source.build()
    source_lang, target_lang = (
        given or file or default
        for given, file, default in zip(
            languages, source.languages, _LANGUAGES, strict=True
        )
    )
    overruled = [
        file
        for given, file in zip(languages, source.languages, strict=True)
        if file is not None and given not in (None, file)
    ]
    unused = source.unused | (
        {"languages of the files": overruled} if overruled else {}
    )
    values = source.hparams.to_dict().items()
    report = ImportReport(
        model_dir=str(model_dir),
        program=source.program,
        weights_file=str(source.weights_file),
        step=source.step,
        vocab_size=source.tokenizer.vocab_size,
        target_vocab_size=source.tokenizer.target_vocab_size,
        table_rows=built.vocab_size,
        parameters=built.count_params(),
        used=source.used,
        unused=unused,
        every_array=source.every_array,
        hparams={name: value for name, value in values if name in source.described},
        source_lang=source_lang,
        target_lang=target_lang,
        pieces_known=source.pieces_known,
        adam=source.adam,
        notes=source.notes,
    )
    _write(source, checkpoints.copied(named_variables(built)), model_dir, report)
    return report


def _write(
    source: Source, weights: checkpoints.Arrays, model_dir: Path, report: ImportReport
) -> None:
    """Makes the directory, with one checkpoint; it is built aside and then renamed."""
    moments = source.moments or {
        f"{moment}/{name}": np.zeros_like(value)
        for moment in ("m", "v")
        for name, value in weights.items()
    }
    meta = {"imported_from": report.weights_file}
    if report.adam:
        meta["adam"] = report.adam
    provenance = RunMetadata(
        problem=None,
        source_lang=report.source_lang,
        target_lang=report.target_lang,
        data_dir=None,
        problem_fingerprint=None,
        vocabulary_fingerprint=source.tokenizer.fingerprint,
        vocabulary_given=True,
    )
    with _aside(model_dir) as directory:
        directory.begin(source.hparams, provenance, source.tokenizer)
        checkpoints.save(
            directory.checkpoint_dir, source.step, weights, moments, meta=meta
        )


@contextmanager
def _aside(model_dir: Path) -> Iterator[ModelDir]:
    """Yields a directory that takes the name of `model_dir` when it is whole.

    Raises UserError if it cannot be written, or if another process imports there.
    """

    def taken() -> None:
        raise UserError(f"--model_dir {model_dir}: another process imports into it")

    final = model_dir.resolve()  # "." has no name; a link stays.
    folder = final.with_name(f".importing-{final.name}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with exclusive_lock(folder, taken):
            try:
                # Files that a killed process left.
                for left in folder.iterdir():
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
                yield ModelDir(folder)
                put_in_place(folder, final)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise UserError(f"--model_dir {model_dir}: {error.strerror}") from None


def _refuse_to_replace(model_dir: Path) -> None:
    """Raises UserError if the directory exists and holds something."""
    if model_dir.exists() and not (model_dir.is_dir() and not any(model_dir.iterdir())):
        raise UserError(
            f"--model_dir {model_dir} is there and not empty; name another directory"
        )
