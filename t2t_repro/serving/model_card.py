"""What is to be known of an exported model, in one page of Markdown."""

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

import t2t_repro
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.evaluation.split_scores import figures_of
from t2t_repro.hparams import HParams
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.translation.loading import Loaded

_PROGRAMS = ("tensorflow", "tensorflow-text", "keras")
_SEARCHERS = {
    "marian": "Marian",
    "transformers": "Transformers",
    "opennmt": "OpenNMT-tf",
}


def model_card(
    loaded: Loaded,
    search: DecodingConfig,
    *,
    name: str,
    max_input_length: int,
    precision: str,
    licence: str | None,
) -> str:
    """Writes the card as Markdown.

    Args:
        loaded: the exported models; the first one's directory describes the training.
        search: how the export finds translations.
        name: the name under which the model is served.
        max_input_length: the subwords of a text that are read, EOS included.
        precision: of the weights and the computation.
        licence: of the weights; None: not stated.
    """
    directory = loaded.model_dirs[0]
    hparams = directory.hparams().replace(
        beam_size=search.beam_size,
        alpha=search.alpha,
        decode_extra_length=search.extra_length,
        decode_length_factor=search.length_factor,
        search=search.algorithm,
    )
    parameters = sum(model.count_params() for model in loaded.models)
    languages = directory.provenance()
    result = _result(directory, loaded)
    head = f"""\
# {name}

A Transformer ("Attention Is All You Need") that translates {languages.source_lang} \
into {languages.target_lang}: {parameters:,} parameters, {precision}.
"""
    sections = (
        head,
        _training(loaded, result),
        _score(result, hparams, precision),
        _use(hparams, max_input_length),
        _versions(),
        _licence(licence),
        _hparams(hparams),
    )
    return "\n".join(sections)


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


def _training(loaded: Loaded, result: Mapping[str, Any] | None) -> str:
    provenance = loaded.model_dirs[0].provenance()
    data = "Not known: the model was imported."
    if provenance.problem is not None:
        data = f"Trained on `{provenance.problem}` ({provenance.problem_fingerprint})."
    weights = ", ".join(f"`{Path(path).name}`" for path in loaded.checkpoints)
    if result is not None:
        steps = ", ".join(f"{step:,}" for step in result["averaged_steps"])
        weights += f", the mean of the steps {steps}"
    return f"""\
## Training

{data} Weights: {weights}. Vocabulary `{loaded.tokenizer.file_name}` (SHA-256 \
{loaded.tokenizer.fingerprint}).
"""


def _score(result: Mapping[str, Any] | None, hparams: HParams, precision: str) -> str:
    if result is None:
        return "## Score\n\nThe training has not scored these weights.\n"
    searched = (result["beam_size"], result["alpha"])
    line = f"On {result['split']}, beam {searched[0]}, alpha {searched[1]}."
    if searched != (hparams.beam_size, hparams.alpha):
        line += " This export searches otherwise; see below."
    if precision != "float32":
        line += f" Scored in float32, not in {precision}."
    return f"## Score\n\n{line}\n\n```\n{figures_of(result)}\n```\n"


def _use(hparams: HParams, max_input_length: int) -> str:
    factor, searched = hparams.decode_length_factor, ""
    times = "" if factor == 1 else f"{factor:g} times "
    if program := _SEARCHERS.get(hparams.search):
        searched = f", searched as {program} does"
    return f"""\
## Use

Beam {hparams.beam_size}, alpha {hparams.alpha}{searched}. Of a text the first \
{max_input_length} subwords are read, end mark included; a translation has at \
most {hparams.decode_extra_length} more than {times}its text. Translations are the \
model's: nobody has checked them, and they can be fluent and wrong.
"""


def _versions() -> str:
    versions = {
        "t2t_repro": t2t_repro.__version__,
        **{name: version(name) for name in _PROGRAMS},
        "Python": platform.python_version(),
    }
    rows = "\n".join(f"| {name} | {which} |" for name, which in versions.items())
    return f"## Made with\n\n| program | version |\n|---|---|\n{rows}\n"


def _licence(licence: str | None) -> str:
    text = licence or (
        "Not stated for the weights; the terms of the training data may bind them."
    )
    return f"## Licence\n\n{text} The program that made them is under Apache-2.0.\n"


def _hparams(hparams: HParams) -> str:
    text = yaml.safe_dump(hparams.to_dict(), sort_keys=False)
    return f"## Hyper-parameters\n\n```yaml\n{text}```\n"
