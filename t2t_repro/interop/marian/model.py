"""Marian model, read from the files of Marian or Transformers."""

from dataclasses import dataclass, field
from typing import Any

from t2t_repro.interop.embedding_tables import Tables
from t2t_repro.interop.formats.array_store import ArrayStore
from t2t_repro.interop.vocabulary import Vocabularies


@dataclass(frozen=True)
class MarianModel:
    """Checked contents of a model folder, without the layer weights.

    Attributes:
        program: Program that wrote the files: "Marian" or "Transformers".
        store: Arrays of the weight file.
        tables: Embedding tables.
        vocabularies: Vocabularies of both sides.
        hparams: Hyper-parameters of the model, by this package's names.
        search: Hyper-parameters of the search, by this package's names.
        unused: Names of unused arrays and settings by category.
        languages: Source and target language in the files; None if unknown.
        every_array: Whether the model needs all arrays, except those that it computes.
    """

    program: str
    store: ArrayStore
    tables: Tables
    vocabularies: Vocabularies
    hparams: dict[str, Any]
    search: dict[str, Any]
    unused: dict[str, list[str]] = field(default_factory=dict)
    languages: tuple[str | None, str | None] = (None, None)
    every_array: bool = True
