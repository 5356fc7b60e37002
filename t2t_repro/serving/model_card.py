"""Model card of an export: training data, score, use and versions in Markdown.

`interop.own_saved_model` parses the languages, the precision, the vocabulary and the
hyper-parameters in the card.
"""

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
_SEARCH_PROGRAMS = {
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
    """Returns the model card as Markdown.

    Args:
        loaded: Exported models; the directory of the first describes the training.
        search: Settings of the export's search.
        name: Name of the model on the server.
        max_input_length: Number of subwords to which texts are cut, EOS included.
        precision: Precision of the weights and the computation.
        licence: Licence of the weights; None if unknown.
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
    """Returns the scores of the exported weights after training; None if unknown."""
    checkpoints = [Path(path).resolve() for path in loaded.checkpoints]
    if checkpoints != [directory.averaged_dir.resolve()]:
        return None
    try:
        result = json.loads(directory.result_file.read_text(encoding="utf-8"))
        averaged = directory.checkpoint("averaged").meta()["averaged_steps"]
    except (OSError, ValueError, KeyError):
        return None
    # The user may have averaged other checkpoints after training.
    is_current = isinstance(result, dict) and result.get("averaged_steps") == averaged
    return result if is_current and figures_of(result) else None


def _training(loaded: Loaded, result: Mapping[str, Any] | None) -> str:
    provenance = loaded.model_dirs[0].provenance()
    data = "The training data are unknown because the model was imported."
    if provenance.problem is not None:
        data = f"Trained on `{provenance.problem}` ({provenance.problem_fingerprint})."
    weights = ", ".join(f"`{Path(path).name}`" for path in loaded.checkpoints)
    if result is not None:
        steps = ", ".join(f"{step:,}" for step in result["averaged_steps"])
        weights += f", the average of steps {steps}"
    return f"""\
## Training

{data} Weights: {weights}. Vocabulary `{loaded.tokenizer.file_name}` (SHA-256 \
{loaded.tokenizer.fingerprint}).
"""


def _score(result: Mapping[str, Any] | None, hparams: HParams, precision: str) -> str:
    if result is None:
        return "## Score\n\nThese weights were not scored after training.\n"
    settings = (result["beam_size"], result["alpha"])
    line = f"On {result['split']}, beam size {settings[0]}, alpha {settings[1]}."
    if settings != (hparams.beam_size, hparams.alpha):
        line += " This export has other search settings; see below."
    if precision != "float32":
        line += f" Scored in float32, not in {precision}."
    return f"## Score\n\n{line}\n\n```\n{figures_of(result)}\n```\n"


def _use(hparams: HParams, max_input_length: int) -> str:
    factor, rules = hparams.decode_length_factor, ""
    times = "" if factor == 1 else f"{factor:g} times "
    if program := _SEARCH_PROGRAMS.get(hparams.search):
        rules = f", search rules of {program}"
    return f"""\
## Use

Beam size {hparams.beam_size}, alpha {hparams.alpha}{rules}. Texts are cut to the \
first {max_input_length} subwords, EOS included; a translation has at most \
{hparams.decode_extra_length} subwords more than {times}its text. Translations are \
generated automatically and not checked: they can be fluent and wrong.
"""


def _versions() -> str:
    versions = {
        "t2t_repro": t2t_repro.__version__,
        **{name: version(name) for name in _PROGRAMS},
        "Python": platform.python_version(),
    }
    rows = "\n".join(f"| {name} | {number} |" for name, number in versions.items())
    return f"## Versions\n\n| program | version |\n|---|---|\n{rows}\n"


def _licence(licence: str | None) -> str:
    text = licence or (
        "The licence of the weights is not stated; the terms of the training data may "
        "apply to them."
    )
    return f"## Licence\n\n{text} The program t2t_repro has the licence Apache-2.0.\n"


def _hparams(hparams: HParams) -> str:
    text = yaml.safe_dump(hparams.to_dict(), sort_keys=False)
    return f"## Hyper-parameters\n\n```yaml\n{text}```\n"
