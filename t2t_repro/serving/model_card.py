"""What is to be known of an exported model, in one page of Markdown."""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import t2t_repro
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.evaluation.split_scores import figures_of
from t2t_repro.hparams import HParams
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.translation.loading import Loaded

_PROGRAMS = ("tensorflow", "tensorflow-text", "keras")
_SEARCHERS = {
    "marian": "Marian",
    "transformers": "Transformers",
    "opennmt": "OpenNMT-tf",
}


@dataclass(frozen=True)
class CardFacts:
    """What a model card tells.

    Attributes:
        name: under which the model is served.
        source_lang: language of the texts.
        target_lang: language of the translations.
        problem: what it was trained on; None: unknown, the model was imported.
        data_fingerprint: identifies the data; None: unknown.
        vocabulary: the vocabulary file's name.
        vocabulary_fingerprint: SHA-256 of that file.
        hparams: the resolved set, with the search of this export.
        checkpoints: the names of the weights' folders.
        parameters: how many weights.
        max_input_length: subwords of a text that are read, EOS included.
        precision: of the weights and the computation.
        result: the training's score of these weights; None: there is none.
        versions: of the programs that made the export, by name.
        licence: of the weights; None: not stated.
    """

    name: str
    source_lang: str
    target_lang: str
    problem: str | None
    data_fingerprint: str | None
    vocabulary: str
    vocabulary_fingerprint: str
    hparams: HParams
    checkpoints: tuple[str, ...]
    parameters: int
    max_input_length: int
    precision: str
    result: Mapping[str, Any] | None
    versions: Mapping[str, str]
    licence: str | None


def facts_of(loaded: Loaded, search: DecodingConfig, **said: Any) -> CardFacts:
    """Collects what the model directory of the weights, or of the first, tells.

    `said` are the other fields: `name`, `max_input_length`, `precision`, `licence`.
    """
    home = loaded.model_dirs[0]
    provenance = home.provenance()
    hparams = home.hparams().replace(
        beam_size=search.beam_size,
        alpha=search.alpha,
        decode_extra_length=search.extra_length,
        decode_length_factor=search.length_factor,
        search=search.algorithm,
    )
    variables = (
        variable
        for model in loaded.models
        for variable in named_variables(model).values()
    )
    return CardFacts(
        source_lang=provenance.source_lang,
        target_lang=provenance.target_lang,
        problem=provenance.problem,
        data_fingerprint=provenance.problem_fingerprint,
        vocabulary=loaded.tokenizer.file_name,
        vocabulary_fingerprint=loaded.tokenizer.fingerprint,
        hparams=hparams,
        checkpoints=tuple(Path(path).name for path in loaded.checkpoints),
        parameters=sum(int(np.prod(variable.shape)) for variable in variables),
        result=_result(home, loaded),
        versions={
            "t2t_repro": t2t_repro.__version__,
            **{name: version(name) for name in _PROGRAMS},
            "Python": platform.python_version(),
        },
        **said,
    )


def _result(directory: ModelDir, loaded: Loaded) -> Mapping[str, Any] | None:
    """Returns the training's score of the weights that are exported, or None."""
    checkpoints = [Path(path).resolve() for path in loaded.checkpoints]
    if checkpoints != [directory.averaged_dir.resolve()]:
        return None
    try:
        found = json.loads(directory.result_file.read_text(encoding="utf-8"))
        averaged = directory.checkpoint("averaged").meta()["averaged_steps"]
    except (OSError, ValueError, KeyError):
        return None
    # The average may have been made anew by hand, from other checkpoints.
    scored = isinstance(found, dict) and found.get("averaged_steps") == averaged
    return found if scored and figures_of(found) else None


def model_card(facts: CardFacts) -> str:
    """Writes the card as Markdown."""
    sections = (
        _head(facts),
        _training(facts),
        _score(facts),
        _use(facts),
        _versions(facts),
        _licence(facts),
        _hparams(facts.hparams),
    )
    return "\n".join(sections)


def _head(facts: CardFacts) -> str:
    return f"""\
# {facts.name}

A Transformer ("Attention Is All You Need") that translates {facts.source_lang} into \
{facts.target_lang}: {facts.parameters:,} parameters, {facts.precision}.
"""


def _training(facts: CardFacts) -> str:
    if facts.problem is None:
        data = "Not known: the model was imported."
    else:
        data = f"Trained on `{facts.problem}` ({facts.data_fingerprint})."
    weights = ", ".join(f"`{name}`" for name in facts.checkpoints)
    if facts.result is not None:
        steps = ", ".join(f"{step:,}" for step in facts.result["averaged_steps"])
        weights += f", the mean of the steps {steps}"
    return f"""\
## Training

{data} Weights: {weights}. Vocabulary `{facts.vocabulary}` (SHA-256 \
{facts.vocabulary_fingerprint}).
"""


def _score(facts: CardFacts) -> str:
    if facts.result is None:
        return "## Score\n\nThe training has not scored these weights.\n"
    result = facts.result
    searched = (result["beam_size"], result["alpha"])
    line = f"On {result['split']}, beam {searched[0]}, alpha {searched[1]}."
    if searched != (facts.hparams.beam_size, facts.hparams.alpha):
        line += " This export searches otherwise; see below."
    if facts.precision != "float32":
        line += f" Scored in float32, not in {facts.precision}."
    return f"## Score\n\n{line}\n\n```\n{figures_of(result)}\n```\n"


def _use(facts: CardFacts) -> str:
    hparams = facts.hparams
    factor, searched = hparams.decode_length_factor, ""
    times = "" if factor == 1 else f"{factor:g} times "
    if hparams.search != "t2t":
        searched = f", searched as {_SEARCHERS[hparams.search]} does"
    return f"""\
## Use

Beam {hparams.beam_size}, alpha {hparams.alpha}{searched}. Of a text the first \
{facts.max_input_length} subwords are read, end mark included; a translation has at \
most {hparams.decode_extra_length} more than {times}its text. Translations are the \
model's: nobody has checked them, and they can be fluent and wrong.
"""


def _versions(facts: CardFacts) -> str:
    rows = "\n".join(f"| {name} | {which} |" for name, which in facts.versions.items())
    return f"## Made with\n\n| program | version |\n|---|---|\n{rows}\n"


def _licence(facts: CardFacts) -> str:
    text = facts.licence or (
        "Not stated for the weights; the terms of the training data may bind them."
    )
    return f"## Licence\n\n{text} The program that made them is under Apache-2.0.\n"


def _hparams(hparams: HParams) -> str:
    lines = [f"{name}: {_plain(value)}" for name, value in hparams.to_dict().items()]
    return "## Hyper-parameters\n\n```yaml\n" + "\n".join(lines) + "\n```\n"


def _plain(value: object) -> str:
    """Writes a value as YAML does."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
