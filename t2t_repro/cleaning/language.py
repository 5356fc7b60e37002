"""Identification of the languages of many texts, with the model of py3langid."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from t2t_repro.system.errors import UserError

_MOST_BYTES = 400  # The beginning of a longer text suffices.

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def base_language(code: str) -> str:
    """Returns a language code without region, in lower case: "en" for "en-GB"."""
    return re.split("[-_]", code)[0].lower()


class LanguageOdds:
    """py3langid's naive Bayes model, computed for many texts at once.

    py3langid follows its automaton through one text in Python, which would take most
    of the time of a cleaning.

    Attributes:
        languages: Codes of the languages, one for each column of the model.
    """

    def __init__(self) -> None:
        model = LanguageIdentifier.from_model_file(MODEL_FILE)
        self._next = np.asarray(model.tk_nextmove)
        self._row = np.asarray(model.tk_row, np.int64) << 8
        self._feature = np.asarray(model.tk_output, np.int64)
        self._columns = np.asarray(model.nb_ptc, np.float32).T.copy()
        self._prior = np.asarray(model.nb_pc)
        self.languages = np.asarray(model.nb_classes)

    def against(self, texts: Sequence[str], language: str) -> Floats:
        """Returns the log odds that a text is in its likeliest other language.

        Args:
            texts: Texts of which only the first 400 bytes are used.
            language: Expected language.

        Returns:
            float64 (texts,), log(P(likeliest language) / P(expected language)); 0 if
            they are the same. The logarithms are divided by the square root of the
            text's length in bytes, as in `LanguageIdentifier(norm_probs=True)`.

        Raises:
            UserError: The model lacks the expected language.
        """
        if language not in self.languages:
            raise UserError(
                f"rule language: py3langid has no model of {language}; pass a file "
                "with 'language: false' as --rules"
            )
        encoded = [_encode(text)[:_MOST_BYTES] for text in texts]
        lengths = np.array([len(text) for text in encoded], np.int64)
        owners, features, counts = self._count_features(encoded, lengths)
        logs = np.log1p(counts)
        columns = (
            np.bincount(owners, column[features] * logs, len(texts)) + prior
            for column, prior in zip(self._columns, self._prior, strict=True)
        )
        best, expected = np.full((2, len(texts)), -np.inf)
        for label, scores in zip(self.languages, columns, strict=True):
            best = np.maximum(best, scores)
            if label == language:
                expected = np.maximum(expected, scores)
        # A text without features, such as digits, is in no language.
        has_features = np.bincount(owners, minlength=len(texts)) > 0
        return has_features * (best - expected) / np.sqrt(np.maximum(lengths, 1))

    def _count_features(
        self, encoded: Sequence[bytes], lengths: Ints
    ) -> tuple[Ints, Ints, Ints]:
        """Follows the automaton through all texts, one byte of each at a time.

        Returns:
            int64 (different features of all texts,): text, feature and its count.
        """
        order = np.argsort(-lengths, kind="stable")
        data = np.frombuffer(b"".join(encoded), np.uint8)
        starts = (np.cumsum(lengths) - lengths)[order]
        states = np.zeros(len(encoded), np.int64)
        keys = [np.zeros(0, np.int64)]
        for position in range(lengths.max(initial=0)):
            active = int(np.count_nonzero(lengths > position))
            letters = data[starts[:active] + position]
            states = self._next[self._row[states[:active]] + letters].astype(np.int64)
            found = self._feature[states]
            texts = order[:active] * self._columns.shape[1]
            keys.append((texts + found)[found >= 0])
        used, counts = np.unique(np.concatenate(keys), return_counts=True)
        return *np.divmod(used, self._columns.shape[1]), counts


def _encode(text: str) -> bytes:
    """Returns a text's bytes as py3langid reads them."""
    text = text.lower() if text.isupper() else text
    return unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass")
