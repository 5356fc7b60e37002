"""Model card of an export: training data, score, use and versions in Markdown.

`interop.own_saved_model` parses the languages, the precision, the vocabulary and the
hyper-parameters in the card.
"""

import math
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from string import Template
from typing import Any

import yaml

import t2t_repro
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.evaluation.split_scores import format_scores
from t2t_repro.hparams import HParams
from t2t_repro.runs.checkpoints import open_checkpoint
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.serving.exports.export_format import ExportOptions
from t2t_repro.translation.loading import Loaded

_TEMPLATE = Path(__file__).with_name("templates") / "model_card.md"
_PROGRAMS = ("tensorflow", "tensorflow-text", "keras")
_SEARCH_PROGRAMS = {
    "marian": "Marian",
    "transformers": "Transformers",
    "opennmt": "OpenNMT-tf",
}
_UNKNOWN_LICENCE = (
    "The licence of the weights is not stated; the terms of the training data may "
    "apply to them."
)


def model_card(
    loaded: Loaded,
    search: DecodingConfig,
    options: ExportOptions,
    max_input_length: int,
    use: str = "",
    exception: str = "",
) -> str:
    """Returns the model card as Markdown.

    Args:
        loaded: Exported models; the directory of the first describes the training.
        search: Settings of the export's search.
        options: Options of the export.
        max_input_length: Number of subwords to which texts are cut, EOS included.
        use: Sentences at the beginning of the section on use.
        exception: Clause about texts that are not cut.
    """
    directory = loaded.model_dirs[0]
    provenance = directory.provenance()
    hparams = directory.hparams().replace(
        beam_size=search.beam_size,
        alpha=search.alpha,
        decode_extra_length=search.extra_length,
        decode_length_factor=search.length_factor,
        search=search.algorithm,
    )
    settings = hparams.to_dict()
    result = _result(directory, loaded)
    data = "The training data are unknown because the model was imported."
    if provenance.problem is not None:
        data = f"Trained on `{provenance.problem}` ({provenance.problem_fingerprint})."
    if origin := provenance.origin:
        data += (
            f" The training started from the weights of `{Path(origin['path']).name}` "
            f"(SHA-256 of the weights: {origin['fingerprint']})."
        )
    folders = list(map(Path, loaded.checkpoints))
    weights = ", ".join(f"`{folder.name}`" for folder in folders)
    if result is not None:
        steps = ", ".join(f"{step:,}" for step in result["averaged_steps"])
        weights += f", the average of steps {steps}"
    precision = options.precision
    if loaded.weight_bits:
        precision += f" with {loaded.weight_bits}-bit weights"
    program = _SEARCH_PROGRAMS.get(search.algorithm)
    factor = search.length_factor
    versions = {
        "t2t_repro": t2t_repro.__version__,
        **{name: version(name) for name in _PROGRAMS},
        "Python": platform.python_version(),
    }
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        settings,
        name=options.model_name,
        source_lang=provenance.source_lang,
        target_lang=provenance.target_lang,
        parameters=f"{sum(map(_count_parameters, folders)):,}",
        precision=precision,
        data=data,
        weights=weights,
        vocabulary=loaded.tokenizer.file_name,
        fingerprint=loaded.tokenizer.fingerprint,
        score=_score(result, hparams, precision),
        use=use,
        exception=exception,
        rules=f", search rules of {program}" if program else "",
        max_input_length=max_input_length,
        times="" if factor == 1 else f"{factor:g} times ",
        versions="\n".join(f"| {name} | {versions[name]} |" for name in versions),
        licence=options.licence or _UNKNOWN_LICENCE,
        hparams=yaml.safe_dump(settings, sort_keys=False).rstrip(),
    )


def _result(directory: ModelDir, loaded: Loaded) -> Mapping[str, Any] | None:
    """Returns the scores of the exported weights after training; None if unknown."""
    checkpoints = [Path(path).resolve() for path in loaded.checkpoints]
    if checkpoints != [directory.averaged_dir.resolve()]:
        return None
    result = directory.result()
    return result if result and format_scores(result) else None


def _count_parameters(checkpoint: Path) -> int:
    """Returns the number of weights in a checkpoint; a quantized model has fewer."""
    return sum(map(math.prod, open_checkpoint(checkpoint).tensors().shapes().values()))


def _score(result: Mapping[str, Any] | None, hparams: HParams, precision: str) -> str:
    if result is None:
        return "These weights were not scored after training."
    settings = (result["beam_size"], result["alpha"])
    line = f"On {result['split']}, beam size {settings[0]}, alpha {settings[1]}."
    if settings != (hparams.beam_size, hparams.alpha):
        line += " This export has other search settings; see below."
    if precision != "float32":
        line += f" Scored in float32, not in {precision}."
    return f"{line}\n\n```\n{format_scores(result)}\n```"
