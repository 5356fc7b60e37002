"""From a model of Marian's to a model directory, whole or not at all."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_repro.hparams import HParams
from t2t_repro.interop import into_model_dir
from t2t_repro.interop.import_report import ImportReport
from t2t_repro.interop.marian.folder import read_marian
from t2t_repro.interop.marian.model import MarianModel
from t2t_repro.interop.marian.search import search_hparams, search_left
from t2t_repro.interop.marian.transformers_folder import CONFIG, read_transformers
from t2t_repro.models.transformer import Transformer
from t2t_repro.system.errors import UserError

CONVENTIONS: dict[str, dict[str, Any]] = {
    "marian": {"position": "sinusoid", "norm_epsilon": 1e-9},
    "transformers": {"position": "sinusoid_halves", "norm_epsilon": 1e-5},
}
"""A program's position signal, and what it adds to the variance."""

# OPUS-MT's recipe of training where Marian's own defaults are others, but for a
# warm-up: its 16,000 updates are for a model that knows nothing yet.
_TRAINING = into_model_dir.TRAINING_ON | {"label_smoothing_form": "marian"}


@dataclass(frozen=True)
class Source:
    """What is imported, and what its files cannot tell."""

    folder: Path  # Of Marian's files, or of Transformers'.
    positions: str = "marian"  # Whose positions and epsilon: a key of `CONVENTIONS`.
    decoder_yml: str | None = None  # Which of several, in a folder of Marian's.
    activation: str | None = None  # Which GELU it is, where the options do not tell.
    source_lang: str | None = None  # Language of the sources; None: as the files say.
    target_lang: str | None = None  # Language of the targets.


def read_model(source: Source) -> MarianModel:
    """Reads and checks a folder of either program; UserError as those do."""
    folder = source.folder
    if not folder.is_dir():
        raise UserError(f"--folder {folder}: no such folder")
    if (folder / CONFIG).is_file():
        if source.decoder_yml or source.activation:
            raise UserError(
                f"--folder {folder} has {CONFIG}, which says it all: --decoder_yml and "
                "--activation are for folders of Marian's"
            )
        return read_transformers(folder)
    return read_marian(folder, source.decoder_yml, source.activation)


def model_hparams(model: MarianModel, positions: str = "marian") -> HParams:
    """Returns the hyper-parameters of a model, with which it can be trained on.

    `positions` is a key of `CONVENTIONS`. UserError: a value of the files is beyond its
    bounds, or they contradict each other.
    """
    conventions = CONVENTIONS[positions]
    if model.hparams["position"] == "none":
        conventions = conventions | {"position": "none"}
    where = f"--folder {model.weights_file.parent}"
    d_model, heads = model.hparams["d_model"], model.hparams["num_heads"]
    if heads and d_model % heads:
        raise UserError(f"{where}: {heads} heads do not divide {d_model} channels")
    values = (
        _TRAINING
        | model.hparams
        | conventions
        | model.tying()
        | search_hparams(model)
        | {
            "tokenizer": "marian",
            "vocab_size": len(model.source.ours),
            "attention_bias": True,
            "softmax_bias": True,
            "target_space_embedding": False,
        }
    )
    try:
        return HParams(**values)
    except UserError as error:
        raise UserError(f"{where}: {str(error).removeprefix('hparams: ')}") from None


def build(model: MarianModel, hparams: HParams) -> Transformer:
    """Builds the model with its weights; UserError unless these fit."""
    target = None if model.target is None else len(model.target.ours)
    return into_model_dir.build(hparams, target, model.variables())


def import_model(source: Source, model_dir: Path) -> ImportReport:
    """Makes a model directory, absent or empty before, of a Marian model.

    Everything is read and checked before anything is written; the directory is built
    aside and then renamed. UserError: it is in use, or the parts do not fit each other,
    are damaged, or are of a model that this package does not have.
    """
    from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer

    into_model_dir.refuse_to_replace(model_dir)
    model = read_model(source)
    hparams = model_hparams(model, source.positions)
    known = model.pieces_known()
    unused = model.unused | {"settings of the search": search_left(model)}
    tokenizer = MarianTokenizer.from_pieces(
        model.source_model,
        model.target_model,
        model.source.ours,
        None if model.target is None else model.target.ours,
    )
    built = build(model, hparams)
    given = source.source_lang, source.target_lang
    source_lang, target_lang = (
        flag or file or default
        for flag, file, default in zip(
            given, model.languages, ("en", "de"), strict=True
        )
    )
    unused["languages of the files"] = [
        file
        for flag, file in zip(given, model.languages, strict=True)
        if file is not None and flag not in (None, file)
    ]
    into_model_dir.write_untrained(
        model_dir,
        hparams,
        tokenizer,
        (source_lang, target_lang),
        built,
        str(model.weights_file),
    )
    told = model.hparams | CONVENTIONS["marian"] | model.tying() | search_hparams(model)
    changed = {name: value for name, value in hparams.to_dict().items() if name in told}
    return ImportReport(
        model_dir=str(model_dir),
        program=model.program,
        weights_file=str(model.weights_file),
        vocab_size=len(model.source.ours),
        target_vocab_size=None if model.target is None else len(model.target.ours),
        parameters=built.count_params(),
        used=model.used,
        unused=unused,
        hparams=changed,
        source_lang=source_lang,
        target_lang=target_lang,
        pieces_known=known,
    )
