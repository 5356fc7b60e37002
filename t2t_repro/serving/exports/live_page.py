"""HTML page that contains a model and translates in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro import problems
from t2t_repro.hparams.supported import Supported
from t2t_repro.serving.exports.export_format import ExportFormat, ExportOptions
from t2t_repro.system.errors import UserError

if TYPE_CHECKING:
    from t2t_repro.runs.model_dir import ModelDir
    from t2t_repro.translation.loading import Loaded


class LivePage(ExportFormat):
    """Live page with a fixed beam size and alpha."""

    name = "live_page"
    file = "live.html"
    precisions = ("float32",)
    flags = ("beam_size", "alpha", "model_name")

    @property
    def supported(self) -> Supported:
        """Hyper-parameters of the page's implementation in JavaScript."""
        from t2t_repro.live_page.model_data import SUPPORTED

        return SUPPORTED

    def write(self, loaded: Loaded, folder: Path, options: ExportOptions) -> None:
        """Writes the page."""
        (folder / self.file).write_text(self.page(loaded, options), encoding="utf-8")

    def page(self, loaded: Loaded, options: ExportOptions, example: str = "") -> str:
        """Returns the HTML of the page.

        Args:
            loaded: Model and tokenizer.
            options: Beam size, alpha and the name of the model.
            example: Sentence that the page translates initially; "" for the example of
                a built-in problem, if it has one.

        Raises:
            UserError: The page does not support the model, or the model is too large.
        """
        from t2t_repro.live_page.page import live_page

        search = loaded.search(beam_size=options.beam_size, alpha=options.alpha)
        directory = loaded.model_dirs[0]
        hparams = directory.hparams().replace(
            beam_size=search.beam_size,
            alpha=search.alpha,
            decode_extra_length=search.extra_length,
        )
        vocabulary = directory.path / loaded.tokenizer.file_name
        return live_page(
            *(loaded.models[0], hparams, vocabulary.read_bytes(), vocabulary.name),
            options.model_name,
            example or _example(directory),
        )


def _example(directory: ModelDir) -> str:
    """Returns the example of a built-in problem, and "" for any other model."""
    # A custom problem would run code that the name in a model directory selects.
    if directory.provenance().problem not in problems.names():
        return ""
    try:
        return directory.problem().example
    except UserError:  # The folder of the data no longer exists.
        return ""


LIVE_PAGE = LivePage()
