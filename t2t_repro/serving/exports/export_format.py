"""Base class of the formats, and the options of an export."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from t2t_repro.hparams.supported import Supported
from t2t_repro.serving.digests import add_digests
from t2t_repro.serving.versions import check_format, write_version
from t2t_repro.system.errors import UserError

if TYPE_CHECKING:
    from t2t_repro.translation.loading import Loaded


@dataclass(frozen=True)
class ExportOptions:
    """Options of an export, of which each format uses some.

    Attributes:
        precision: One of the format's `precisions`.
        beam_size: Number of hypotheses of the search; None for the model's.
        alpha: Exponent of the length penalty; None for the model's.
        max_input_length: Number of subwords to which texts are cut, EOS included; None
            for the format's default.
        with_terms: Whether to add the signature ``terms``.
        model_name: Name of the model, on the server or in the title of the page.
        licence: Licence of the weights in the model card; None if unknown.
    """

    precision: str = "float32"
    beam_size: int | None = None
    alpha: float | None = None
    max_input_length: int | None = None
    with_terms: bool = False
    model_name: str = "model"
    licence: str | None = None


class ExportFormat(ABC):
    """Format of exported models.

    Attributes:
        name: Value of --format, and key of the version in the result of `export`.
        file: File that each version contains.
        precisions: Precisions of the weights.
        flags: Flags of the command `export` that not every format has.
        takes_ids: Whether the export translates ids instead of text.
        converts: Whether `write` converts float32 weights to the precision. Otherwise,
            the models are loaded in the precision.
        supports_ensembles: Whether an export can contain several models.
        supports_fast: Whether the graph may contain optimized implementations.
    """

    name: ClassVar[str]
    file: ClassVar[str]
    precisions: ClassVar[tuple[str, ...]]
    flags: ClassVar[tuple[str, ...]] = ()
    takes_ids: ClassVar[bool] = False
    converts: ClassVar[bool] = True
    supports_ensembles: ClassVar[bool] = False
    supports_fast: ClassVar[bool] = True

    @property
    @abstractmethod
    def supported(self) -> Supported:
        """Hyper-parameters that the format can represent."""

    def check_folder(self, export_dir: Path, model_name: str) -> None:
        """Raises UserError if the folder cannot contain a version of the model."""
        check_format(export_dir, self.file, self.takes_ids)

    @abstractmethod
    def write(self, loaded: Loaded, folder: Path, options: ExportOptions) -> None:
        """Writes a model with supported hyper-parameters to an empty folder."""

    def export(
        self, loaded: Loaded, export_dir: Path, options: ExportOptions
    ) -> dict[str, Any]:
        """Writes the next version of an export, with digests in its model card.

        Args:
            loaded: Model, or the models of an ensemble.
            export_dir: Folder of all versions; created if missing.
            options: Options of the export.

        Returns:
            ``checkpoint``, the folders of the weights, and the version's folder with
            the format's name as key.

        Raises:
            UserError: The format does not support a model, or the folder contains
                another format or cannot be written.
        """
        self.check_folder(export_dir, options.model_name)
        checkpoints = ", ".join(loaded.checkpoints)
        if len(loaded.models) > 1 and not self.supports_ensembles:
            raise UserError(
                f"--checkpoint {checkpoints}: --format {self.name} does not support "
                "ensembles; name one checkpoint"
            )
        for directory in loaded.model_dirs:
            self.supported.check(directory.hparams())

        def write(folder: Path) -> None:
            self.write(loaded, folder, options)
            add_digests(folder, options.model_name, self.name)

        version = write_version(export_dir, write)
        return {"checkpoint": checkpoints, self.name: str(version)}
