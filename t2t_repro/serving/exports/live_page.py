"""HTML page that contains a model and translates in the browser."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.hparams.supported import Supported
from t2t_repro.serving.exports.export_format import ExportFormat, ExportOptions
from t2t_repro.system.errors import UserError

if TYPE_CHECKING:
    from t2t_repro.problems import Problem
    from t2t_repro.runs.model_dir import ModelDir
    from t2t_repro.translation.loading import Loaded


# Problems whose pairs are read without a download and without the user's code.
_READ_LOCALLY = ("translate_ende_numbers", "files")
_MOST_READ = 2000  # Maximum number of pairs of the test split that are read.
_WORDS = (12, 10, 8, 6, 4)
_MOST_CHARACTERS = 80


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

    def page(
        self, loaded: Loaded, options: ExportOptions, examples: Sequence[str] = ()
    ) -> str:
        """Returns the HTML of the page.

        Args:
            loaded: Model and tokenizer.
            options: Beam size, alpha and the name of the model.
            examples: Sentences that the page offers; by default sentences of the test
                split, if the model was trained on the built-in corpus or on files.

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
            examples or read_examples(directory),
            describe_data(directory),
        )


def choose_examples(sentences: Iterable[str]) -> list[str]:
    """Returns up to ten sentences: five of different lengths, longest first, twice.

    For each number of words in `_WORDS` these are the first two sentences without a
    repeated word. A sentence of twelve words shows most: attention has many words to
    choose from, and its picture is still readable. For a language that does not
    separate words, these are the first ten sentences of at most 80 characters.
    """
    lines = [line.strip() for line in sentences]
    by_length: dict[int, list[str]] = {count: [] for count in _WORDS}
    for line in lines:
        words = line.casefold().split()
        if len(words) in _WORDS and len({*words}) == len(words):
            by_length[len(words)].append(line)
    groups = by_length.values()
    found = [group[n] for n in range(2) for group in groups if len(group) > n]
    short = [line for line in lines if line and len(line) <= _MOST_CHARACTERS]
    return found or short[: 2 * len(_WORDS)]


def _local_problem(directory: ModelDir) -> Problem | None:
    """Returns the problem of a model if its pairs can be read from this machine."""
    # A custom problem would run code that the name in a model directory selects.
    if directory.provenance().problem not in _READ_LOCALLY:
        return None
    try:
        return directory.problem()
    except UserError:  # The folder of the data no longer exists.
        return None


def read_examples(directory: ModelDir) -> list[str]:
    """Returns sentences of the test split, or none if it cannot be read."""
    problem = _local_problem(directory)
    try:
        if problem is None or not problem.has("test"):
            return []
        pairs = islice(problem.pairs("test"), _MOST_READ)
        return choose_examples(source for source, _ in pairs)
    except UserError:  # The files are no longer valid.
        return []


def describe_data(directory: ModelDir) -> str:
    """Returns a sentence about the training data of a model."""
    data = directory.provenance()
    if data.problem is None:
        return (
            f"This model was imported ({data.source_lang} to {data.target_lang}); "
            "its training data are not recorded."
        )
    problem = _local_problem(directory)
    try:
        text = problem.description("train") if problem else data.problem
    except UserError:  # The files no longer exist.
        text = data.problem
    return (
        f"Trained to translate {data.source_lang} to {data.target_lang} on {text}. "
        "It can translate only sentences like those of its training data."
    )


LIVE_PAGE = LivePage()
