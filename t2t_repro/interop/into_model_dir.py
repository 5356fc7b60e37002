"""A model directory that an import makes: whole, or not at all."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.errors import UserError
from t2t_repro.system.locks import alone_in
from t2t_repro.system.whole_folders import put_in_place


@contextmanager
def aside(model_dir: Path) -> Iterator[ModelDir]:
    """Yields a directory that takes the name of `model_dir` when it is whole.

    UserError: it cannot be written, or another process imports there.
    """

    def taken() -> None:
        raise UserError(f"--model_dir {model_dir}: another process imports into it")

    final = model_dir.resolve()  # "." has no name; a link stays.
    folder = final.with_name(f".importing-{final.name}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with alone_in(folder, taken):
            try:
                # What a killed process left.
                for left in folder.iterdir():
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
                yield ModelDir(folder)
                put_in_place(folder, final)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise UserError(f"--model_dir {model_dir}: {error.strerror}") from None


def refuse_to_replace(model_dir: Path) -> None:
    """Raises UserError if the directory is there and holds something."""
    if model_dir.exists() and not (model_dir.is_dir() and not any(model_dir.iterdir())):
        raise UserError(
            f"--model_dir {model_dir} is there and not empty; name another directory"
        )
