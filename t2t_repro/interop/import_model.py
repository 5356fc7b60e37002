"""Creation of a model directory from another program's model."""

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
from t2t_repro.runs.tensor_file import copy_to_host
from t2t_repro.system.atomic_dir import put_in_place
from t2t_repro.system.durability import make_folders
from t2t_repro.system.errors import UserError
from t2t_repro.system.locks import exclusive_lock

_LANGUAGES = ("en", "de")


def import_model(
    read: Callable[[], Source],
    model_dir: Path,
    languages: tuple[str | None, str | None] = (None, None),
) -> ImportReport:
    """Writes a model directory atomically from another program's model.

    All files are read and checked before anything is written.

    Args:
        read: Function that reads and checks the model.
        model_dir: Directory to create; it must be absent or empty.
        languages: Codes of the source and target language; None uses the code in the
            model's files, or "en" and "de" if they contain none.

    Returns:
        The report of the import.

    Raises:
        UserError: The directory cannot be written, is in use or is not empty, or
            `read` rejects the model.
    """
    if model_dir.exists() and not (model_dir.is_dir() and not any(model_dir.iterdir())):
        raise UserError(
            f"--model_dir {model_dir} exists and is not empty; give another directory"
        )
    source = read()
    built = source.build()
    codes = zip(languages, source.languages, _LANGUAGES, strict=True)
    source_lang, target_lang = (
        flag or file or default for flag, file, default in codes
    )
    weights = copy_to_host(named_variables(built))
    moments = source.moments or {
        f"{moment}/{name}": np.zeros_like(value)
        for moment in ("m", "v")
        for name, value in weights.items()
    }
    provenance = RunMetadata(
        problem=None,
        source_lang=source_lang,
        target_lang=target_lang,
        data_dir=None,
        problem_fingerprint=None,
        vocabulary_fingerprint=source.tokenizer.fingerprint,
        vocabulary_given=True,
    )
    meta = {
        "imported_from": str(source.weights_file),
        checkpoints.DATA: provenance.data,
    }
    if source.adam:
        meta["adam"] = source.adam
    with _atomic_model_dir(model_dir) as directory:
        hparams = source.hparams.replace(problem=None)
        directory.begin(hparams, provenance, source.tokenizer)
        checkpoints.save(
            directory.checkpoint_dir, source.step, weights, moments, meta=meta
        )
    return ImportReport(
        source,
        str(model_dir),
        (source_lang, target_lang),
        parameters=built.count_params(),
        table_rows=built.vocab_size,
    )


@contextmanager
def _atomic_model_dir(model_dir: Path) -> Iterator[ModelDir]:
    """Yields a temporary directory and renames it to `model_dir` at the end.

    Raises:
        UserError: The directory cannot be written, or another process imports into it.
    """

    def raise_locked() -> None:
        raise UserError(
            f"--model_dir {model_dir}: another process is importing into it; wait for "
            "it or give another directory"
        )

    # Resolve the path, so that the target of a symbolic link is replaced instead of the
    # link, and that "." has a name for `with_name`.
    final = model_dir.resolve()
    folder = final.with_name(f".importing-{final.name}")
    try:
        make_folders(folder)
        with exclusive_lock(folder, raise_locked):
            try:
                # Remove the files of a killed import.
                for path in folder.iterdir():
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                yield ModelDir(folder)
                put_in_place(folder, final)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise UserError(f"--model_dir {model_dir}: {error.strerror}") from None
