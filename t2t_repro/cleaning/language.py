"""Identification of the languages of many texts, with the model of py3langid."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from t2t_repro.system.errors import UserError

_MOST_BYTES = 400  # The beginning of a longer text suffices.
_TEXTS_PER_MATMUL = 64  # More texts have more features, so that the matrix is sparser.

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


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
        self._weights = np.asarray(model.nb_ptc, np.float32)
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
        expected, best = np.zeros((2, len(texts)))
        for first in range(0, len(texts), _TEXTS_PER_MATMUL):
            rows = slice(first, first + _TEXTS_PER_MATMUL)
            start, stop = np.searchsorted(owners, (rows.start, rows.stop))
            used, columns = np.unique(features[start:stop], return_inverse=True)
            matrix = np.zeros((len(texts[rows]), len(used)), np.float32)
            matrix[owners[start:stop] - first, columns] = np.log1p(counts[start:stop])
            scores = matrix @ self._weights[used] + self._prior
            best[rows] = scores.max(axis=1)
            expected[rows] = scores[:, self.languages == language].max(axis=1)
        # A text without features, such as an empty one, is in no language.
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
            texts = order[:active] * len(self._weights)
            keys.append((texts + found)[found >= 0])
        used, counts = np.unique(np.concatenate(keys), return_counts=True)
        return *np.divmod(used, len(self._weights)), counts


def _encode(text: str) -> bytes:
    """Returns a text's bytes as py3langid reads them."""
    text = text.lower() if text.isupper() else text
    return unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass")
