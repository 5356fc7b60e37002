"""Options of a translation, and the only table of those that cannot be combined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from t2t_repro.decoding.config import DecodingConfig, Sampling
from t2t_repro.hparams import HParams
from t2t_repro.system.errors import UserError
from t2t_repro.texts.placeholders import Placeholders
from t2t_repro.tokenizers.tokenizer import Tokenizer

UNKNOWN = ("allow", "forbid", "replace")
"""Ways to handle unknown tokens: the search may or may not produce them, or it may and
each is replaced by its aligned source word."""

# With these options a text is one line, which is not divided.
_UNDIVIDED = ("nbest", "alignment", "prefixes", "term_lists", "tensor2tensor_rules")

# The options with which each option cannot be combined.
_EXCLUDED = {
    "sampling": ("beam_size", "alpha", "algorithm", "word_penalty"),
    "tensor2tensor_rules": (
        *("sampling", "min_length", "no_repeat_ngram", "prefixes"),
        *("unknown", "never"),
    ),
    "terms": ("sampling", "tensor2tensor_rules", "min_length", "no_repeat_ngram"),
    "prefixes": ("terms", "placeholders"),
    "xla": ("sampling", "tensor2tensor_rules", "prefixes", "terms"),
    "unknown": ("never",),
    "split_sentences": _UNDIVIDED,
    "line_breaks": _UNDIVIDED,
}
_IN_PYTHON = {
    "line_breaks": "a text with a line break",
    "term_lists": "a list of terms",
}
_IN_COMMANDS = {"prefixes": "--prefix_file"}

Spell = Callable[[str], str]
"""Returns the name of an option in messages."""


def spell_in_python(name: str) -> str:
    """Returns the name of an option as callers of `load(...).translate` write it."""
    return _IN_PYTHON.get(name, name)


def spell_in_commands(name: str) -> str:
    """Returns the flag of an option."""
    return _IN_COMMANDS.get(name, f"--{name}")


@dataclass(frozen=True)
class TranslationOptions:
    """Options of a translation; None keeps the model's setting.

    The fields up to `tensor2tensor_rules` are those of `DecodingConfig`.

    Attributes:
        unknown: One of `UNKNOWN`; None for the model's `allow_unknown`. Vocabularies
            that can spell every text lack an unknown token.
        prefixes: Whether each translation begins with a prefix.
        terms: Lexical constraints; see `RequiredTerms`.
        placeholders: Text that translations keep; None for none.
        split_sentences: Whether each sentence of a text is translated separately.
        line_breaks: Whether a text contains line breaks.
        alignment: Whether the words are aligned.
        xla: Whether XLA compiles the search; None: where this is faster.
    """

    beam_size: int | None = None
    alpha: float | None = None
    extra_length: int | None = None
    nbest: int | None = None
    min_length: int | None = None
    no_repeat_ngram: int | None = None
    algorithm: str | None = None
    word_penalty: float | None = None
    length_factor: float | None = None
    never: tuple[int, ...] | None = None
    sampling: Sampling | None = None
    tensor2tensor_rules: bool = False
    unknown: str | None = None
    prefixes: bool = False
    terms: Mapping[str, str] | Sequence[Sequence[str]] | None = None
    placeholders: Placeholders | None = None
    split_sentences: bool = False
    line_breaks: bool = False
    alignment: bool = False
    xla: bool | None = None

    def given(self) -> frozenset[str]:
        """Returns the names of the options that are in effect."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("min_length", "no_repeat_ngram"):
            values[name] = values[name] or None
        if not isinstance(self.terms, Mapping | None):
            values["term_lists"] = True
        return frozenset(
            name
            for name, value in values.items()
            if value is not None and value is not False
        )

    @property
    def divides(self) -> bool:
        """Whether texts may be divided into lines and sentences."""
        return self.given().isdisjoint(_UNDIVIDED)

    @property
    def can_compile(self) -> bool:
        """Whether `xla` can be combined with the other options."""
        return self.given().isdisjoint(_EXCLUDED["xla"])

    def check(self, hparams: HParams, spell: Spell = spell_in_python) -> None:
        """Rejects options that cannot be combined, or do not suit the model.

        Args:
            hparams: Hyper-parameters of the model.
            spell: Function that spells the options in messages.

        Raises:
            ValueError: The options contradict each other or the model.
        """
        given = self.given()
        for name, others in _EXCLUDED.items():
            for other in others:
                if {name, other} <= given:
                    raise ValueError(
                        f"{spell(name)} and {spell(other)} cannot be combined; give "
                        "one of them"
                    )
        algorithm = self.algorithm or hparams.search
        if self.tensor2tensor_rules and algorithm != "t2t":
            raise ValueError(
                f"{spell('tensor2tensor_rules')}: the model uses {algorithm}'s search "
                "(search in its hparams.yaml); omit the option"
            )
        beam_size = self.beam_size or hparams.beam_size
        is_beam_search = "sampling" not in given
        if is_beam_search and isinstance(self.nbest, int) and self.nbest > beam_size:
            raise ValueError(
                f"{spell('nbest')} {self.nbest} exceeds the beam size {beam_size}; "
                f"give {spell('beam_size')} {self.nbest} or more"
            )

    def search(self, hparams: HParams, tokenizer: Tokenizer) -> DecodingConfig:
        """Returns the settings of a model's search.

        Args:
            hparams: Hyper-parameters of the model, which contain the defaults.
            tokenizer: Tokenizer of the model.

        Raises:
            UserError: The settings limit every output to 0 tokens.
            ValueError: A setting is out of range.
        """
        if self.unknown not in (None, *UNKNOWN):
            raise ValueError(f"unknown is {self.unknown!r}, must be one of {UNKNOWN}")
        token = tokenizer.target.unknown_id
        forbids = self.unknown == "forbid"
        if self.unknown is None and not self.tensor2tensor_rules:
            forbids = not hparams.allow_unknown
        settings: dict[str, Any] = {
            "beam_size": hparams.beam_size,
            "alpha": hparams.alpha,
            "extra_length": hparams.decode_extra_length,
            "length_factor": hparams.decode_length_factor,
            "algorithm": hparams.search,
            "word_penalty": hparams.word_penalty,
            "never": (token,) if forbids and token is not None else (),
        }
        for field in fields(DecodingConfig):
            value = getattr(self, field.name)
            if value is not None:
                # TensorFlow does not combine int64 numbers of NumPy with its int32
                # tensors.
                is_numpy = isinstance(value, np.generic)
                settings[field.name] = value.item() if is_numpy else value
        search = DecodingConfig(**settings)
        for token in search.never:
            if token not in range(tokenizer.target.vocab_size):
                raise ValueError(f"never contains {token!r}, which is not a target id")
        if not search.longest(1):
            raise UserError(
                "extra_length is 0, so every translation would be empty, because the "
                "length limit of this model does not depend on its input "
                "(decode_length_factor is 0); set extra_length to at least 1"
            )
        return search
