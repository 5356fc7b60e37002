"""A model that Marian trained, from either kind of folder."""

from dataclasses import dataclass, field
from typing import Any

from t2t_repro.interop.embedding_tables import Tables
from t2t_repro.interop.formats.array_store import ArrayStore
from t2t_repro.interop.vocabulary import Vocabularies


@dataclass(frozen=True)
class MarianModel:
    """A folder that was read and checked, except for the weights of the stacks.

    Attributes:
        program: Program that wrote the files: "Marian" or "Transformers".
        store: The file of weights.
        tables: Its embedding tables.
        vocabularies: The pieces of the tables' rows.
        hparams: Hyper-parameters of the model, by our names.
        search: Hyper-parameters of the search, by our names.
        unused: Names of unused arrays and settings, by kind.
        languages: Languages of source and target, None where unknown.
    """

    program: str
    store: ArrayStore
    tables: Tables
    vocabularies: Vocabularies
    hparams: dict[str, Any]
    search: dict[str, Any]
    unused: dict[str, list[str]] = field(default_factory=dict)
    languages: tuple[str | None, str | None] = (None, None)
