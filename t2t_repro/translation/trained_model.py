"""Python interface of a trained model."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

from t2t_repro import fast
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer
from t2t_repro.system.interrupts import delay_interrupts
from t2t_repro.system.quiet_import import use_tensorflow_backend
from t2t_repro.texts.placeholders import Placeholders
from t2t_repro.texts.translation import Translation
from t2t_repro.texts.windows import windows
from t2t_repro.tokenizers.tokenizer import Tokenizer
from t2t_repro.translation.alignments import Aligner
from t2t_repro.translation.arguments import (
    check_number,
    check_pairs,
    check_strings,
    check_terms,
    check_token_ids,
)
from t2t_repro.translation.build import build, build_translator, choose_compilation
from t2t_repro.translation.loading import Loaded, load_models
from t2t_repro.translation.options import TranslationOptions
from t2t_repro.translation.pair_scores import PairScorer
from t2t_repro.translation.translator import Translator

_Key = tuple[DecodingConfig, str | None, float | None]
_WINDOW = 4096  # Maximum number of sentences that are sorted by length together.


class TrainedModel:
    """A trained model, as returned by `load`.

    Attributes:
        model: Keras model; the first model of an ensemble.
        tokenizer: Tokenizer, which converts text to ids and back.
        hparams: Hyper-parameters of the model and its training.
    """

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self.model: Transformer = loaded.models[0]
        self.tokenizer: Tokenizer = loaded.tokenizer
        self.hparams: HParams = loaded.hparams
        self._translators: dict[_Key, Translator] = {}
        self._aligner = Aligner(self.model, self.tokenizer)
        self._scorer = PairScorer(self.model, self.tokenizer)

    def translate(
        self,
        texts: Iterable[str],
        *,
        nbest: int | None = None,
        return_scores: bool = False,
        alignment: bool = False,
        prefixes: Sequence[str] | None = None,
        terms: Mapping[str, str] | Sequence[Sequence[str]] | None = None,
        placeholders: str | Sequence[str] = (),
        unknown: str | None = None,
        split_sentences: bool = False,
        batch_size: int = 32,
        **search: Any,
    ) -> list[Any]:
        """Translates texts, as `python -m t2t_repro.translate` does.

        The lines of a text are translated separately, or its sentences if the model
        cannot read one of the lines whole. Line breaks are kept.

        Args:
            texts: Texts, or a single text.
            nbest: Number of hypotheses of each sentence, at most the beam size.
            return_scores: Whether to return scores, as `nbest` and `alignment` do.
            alignment: Whether to align the words of each hypothesis with the source. An
                ensemble aligns with its first model.
            prefixes: Prefix of each translation, or "". The translation of a blank
                sentence is "" nevertheless.
            terms: Lexical constraints: target terms by source term, as in a file of
                `--terms`, or the list of target terms of each sentence. Cannot be
                combined with prefixes.
            placeholders: Regular expressions of text that translations keep, or names
                of presets, as for `--placeholders`; one or several. Cannot be combined
                with prefixes.
            unknown: Whether to "allow" unknown tokens, to "forbid" them, or to
                "replace" them by their aligned source words; None for the model's
                `allow_unknown`.
            split_sentences: Whether to translate each sentence of a text separately.
            batch_size: Maximum number of sentences per batch.
            **search: Settings that replace the model's defaults: `beam_size`, `alpha`,
                ... (fields of `t2t_repro.decoding.config.DecodingConfig`), and `xla`:
                whether XLA compiles the search for a few sentences; None: after some
                seconds of searches on a CPU.

        Returns:
            For each sentence, in order, its translation (str); "" for a blank sentence.
            With `nbest`, `return_scores` or `alignment`, a `Translation`. The
            tokens and log probability of a text are sums over its sentences, and its
            score is their mean.

        Raises:
            TypeError: A text is not a string, `never` is not iterable, or `search` has
                an unknown setting.
            UserError: A regular expression in `placeholders` is not valid or matches a
                term, or a prefix or `min_length` is longer than its translation may be.
            ValueError: A setting is out of range, settings cannot be combined, the
                numbers of prefixes or lists of terms and sentences differ, or a text
                has several lines or `split_sentences` is set with `nbest`,
                `alignment`, `prefixes`, lists of terms or `tensor2tensor_rules`, which
                are for single sentences.
        """
        lines = check_strings(texts, "texts")
        patterns = check_strings(placeholders, "placeholders")
        if not isinstance(batch_size, Integral) or batch_size < 1:
            raise ValueError(
                f"batch_size is {batch_size!r}, must be a whole number of at least 1"
            )
        if search.get("never") is not None:
            search["never"] = check_token_ids(search["never"])
        options = TranslationOptions(
            nbest=nbest,
            alignment=alignment,
            prefixes=prefixes is not None,
            terms=None if terms is None else check_terms(terms, lines),
            placeholders=Placeholders(patterns) if patterns else None,
            unknown=unknown,
            split_sentences=split_sentences,
            line_breaks=any("\n" in line for line in lines),
            **search,
        )
        options.check(self.hparams)
        starts = None
        if prefixes is not None:
            starts = check_number(
                lines, check_strings(prefixes, "prefixes"), "prefixes"
            )
        translations = self._translate(lines, options, batch_size, starts)
        if alignment:
            return self._aligner.align_hypotheses(lines, translations)
        if return_scores or nbest is not None:
            return translations
        return [translation.text for translation in translations]

    def _translate(
        self,
        lines: Sequence[str],
        options: TranslationOptions,
        batch_size: int,
        prefixes: Sequence[str] | None,
    ) -> list[Translation]:
        """Translates texts, and warns of cut texts and of terms without effect."""
        translator = self._translator(options)
        pipeline = build(self._loaded, options, self._aligner, translator)
        if pipeline.terms and pipeline.terms.unwritable:
            warnings.warn(
                f"the model's vocabulary cannot spell "
                f"{', '.join(pipeline.terms.unwritable)}; these terms are not required",
                stacklevel=3,
            )
        translations: list[Translation] = []
        for part in windows(lines, _WINDOW):
            place = slice(len(translations), len(translations) + len(part))
            with delay_interrupts(None) as report:
                translations += pipeline.translate_window(
                    part, batch_size, report, prefixes and prefixes[place]
                )
        if cut := sum(each.cut for each in translations):
            warnings.warn(
                f"cut to {pipeline.limit}: {cut:,} of {len(lines):,} texts",
                stacklevel=3,
            )
        return translations

    def _translator(self, options: TranslationOptions) -> Translator:
        """Returns the translator with these options, which is created once."""
        # Terms and prefixes are arguments of each call.
        free = replace(options, terms=None, prefixes=False)
        compile_after = choose_compilation(free, self.model.compute_dtype)
        config = options.search(self.hparams, self.tokenizer)
        key = config, options.unknown, compile_after
        if key not in self._translators:
            translator = build_translator(self._loaded, options, compile_after)
            self._translators[key] = translator
        return self._translators[key]

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[float]:
        """Scores given translations.

        Args:
            pairs: Source and target sentences.

        Returns:
            The log probability of each target, EOS included, in nats. An ensemble
            scores with its first model.

        Raises:
            TypeError: A sentence is not a string, or `pairs` is not iterable.
            UserError: A target is longer than `pair_scores.MAX_TARGET_LENGTH`.
            ValueError: A pair does not contain two sentences.
        """
        scores = list(self._scorer.score_pairs(check_pairs(pairs)))
        if cut := sum(score.cut for score in scores):
            warnings.warn(
                f"cut to {self._scorer.max_input_length} subwords, EOS included: "
                f"{cut:,} of {len(scores):,} sources",
                stacklevel=2,
            )
        return [score.log_prob for score in scores]


def load(
    model_dir: str | os.PathLike[str],
    checkpoint: str = "best",
    precision: str = "float32",
) -> TrainedModel:
    """Loads a trained model.

    The function also installs the optimized implementations of `t2t_repro.fast` in the
    process. On a CPU, a thread compiles the search for a few sentences when it has been
    used for some seconds (`CompiledSearcher`).

    Args:
        model_dir: Model directory, written by `train` or an import command.
        checkpoint: "best" ("averaged" if it exists and is of the newest data, else
            "latest"), "latest", "averaged", or the folder of a checkpoint. A
            comma-separated list is an ensemble.
        precision: "float32", "bfloat16", or "int8" on an x86-64 CPU. The first use of
            "int8" calibrates the model on the validation split.

    Raises:
        UserError: The model or checkpoint is missing or damaged, or Keras was imported
            with another backend than TensorFlow.
    """
    use_tensorflow_backend()
    fast.install()
    return TrainedModel(load_models(model_dir, checkpoint, precision))
