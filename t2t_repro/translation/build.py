"""Construction of a translator, or of the pipeline around it, from options."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from t2t_repro import fast
from t2t_repro.fast.parallel_batches import give_each_batch_a_core
from t2t_repro.fast.searchers import fastest_searcher
from t2t_repro.fast.thresholds import LINES_THAT_PAY, SECONDS_THAT_PAY
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.errors import UserError
from t2t_repro.texts.division import Division
from t2t_repro.texts.pipeline import Pipeline
from t2t_repro.texts.placeholders import Placeholders
from t2t_repro.texts.terms import RequiredTerms
from t2t_repro.texts.unknown_words import UnknownWords
from t2t_repro.translation.alignments import Aligner
from t2t_repro.translation.loading import Loaded, load_models
from t2t_repro.translation.options import (
    Spell,
    TranslationOptions,
    spell_in_python,
)
from t2t_repro.translation.translator import Translator


def build(
    loaded: Loaded,
    options: TranslationOptions,
    aligner: Aligner,
    translator: Translator,
) -> Pipeline:
    """Returns the pipeline for texts.

    Args:
        loaded: Model, or models of an ensemble.
        options: Options of the translation.
        aligner: Aligns the words of sentence pairs.
        translator: Translator with the same options, from `build_translator`.

    Raises:
        UserError: A term contains a placeholder.
    """
    placeholders = options.placeholders or Placeholders(())
    terms = division = None
    if options.terms is not None:
        placeholders.check_terms(options.terms)
        terms = RequiredTerms(options.terms, translator.spell_terms)
    if options.divides:
        division = Division(loaded.splitter, options.split_sentences)
    return Pipeline(translator, placeholders, aligner.pairs, terms, division)


def load_to_translate(
    directory: ModelDir,
    checkpoints: str | Sequence[str],
    precision: str = "float32",
    calibration_file: str | None = None,
    compiled: bool = False,
) -> Loaded:
    """Loads models in a process that only translates; see `load_models`.

    Args:
        directory: Model directory.
        checkpoints: As for `load_models`.
        precision: As for `load_models`.
        calibration_file: As for `load_models`.
        compiled: Whether XLA compiles searches.
    """
    give_each_batch_a_core(compiled)
    return load_models(directory, checkpoints, precision, calibration_file)


def build_translator(
    loaded: Loaded,
    options: TranslationOptions | None = None,
    compile_after: float | None = None,
) -> Translator:
    """Returns a translator of lines.

    Args:
        loaded: Model, or models of an ensemble.
        options: Options of the search; None for the model's defaults.
        compile_after: Result of `choose_compilation`.
    """
    options = options or TranslationOptions()
    tokenizer = loaded.tokenizer
    search = options.search(loaded.hparams, tokenizer)
    replace = None
    if options.unknown == "replace":
        aligner = Aligner(loaded.models[0], tokenizer)
        replace = UnknownWords(tokenizer.target, aligner.source_words)
    return Translator(
        loaded.models,
        tokenizer,
        search,
        searcher=fastest_searcher(loaded.models, tokenizer, search, compile_after),
        replace_unknown=replace,
    )


def choose_compilation(
    options: TranslationOptions,
    precision: str,
    lines: int | None = None,
    batch_size: int = 1,
    spell: Spell = spell_in_python,
) -> float | None:
    """Decides whether XLA compiles the search for a few sentences.

    Args:
        options: Options of the translation.
        precision: Precision of the model.
        lines: Number of lines of a file; None if a few sentences come at a time.
        batch_size: Maximum number of sentences per batch.
        spell: Function that spells the options in messages.

    Returns:
        The time in seconds after which it compiles, as for `CompiledSearcher`; None: it
        does not.

    Raises:
        UserError: `options.xla` is set, but the optimized search is not installed.
    """
    if options.xla and not fast.uses("kv_cache"):
        raise UserError(
            f"{spell('xla')} compiles the optimized search, which --no-fast and "
            f"{fast.FAST}=0 disable; omit one of them"
        )
    if options.xla is not None:
        return 0.0 if options.xla else None
    if (
        precision not in LINES_THAT_PAY
        or not options.can_compile
        or not fast.uses("kv_cache")
        or tf.config.list_physical_devices("GPU")
    ):
        return None
    if lines is None:
        return SECONDS_THAT_PAY
    return 0.0 if batch_size == 1 and lines >= LINES_THAT_PAY[precision] else None
