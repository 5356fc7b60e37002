"""From a model of OpenNMT-tf's to a model directory, whole or not at all."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_repro.hparams import HParams
from t2t_repro.interop import into_model_dir
from t2t_repro.interop.import_report import ImportReport
from t2t_repro.interop.marian.model import Arrays, pieces_known
from t2t_repro.interop.opennmt.config import START, read_config
from t2t_repro.interop.opennmt.description import ENDS_SOURCE, described
from t2t_repro.interop.opennmt.model import read_variables
from t2t_repro.interop.opennmt.own_saved_model import import_own, is_own
from t2t_repro.interop.opennmt.variables import Variables
from t2t_repro.models.transformer import Transformer
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer


@dataclass(frozen=True)
class Source:
    """What is imported, and what its files cannot tell."""

    checkpoint: Path  # A prefix, or a folder of checkpoints or of a SavedModel.
    config: tuple[str, ...] = ()  # Files, of which a later one has priority.
    model: str | None = None  # Of the catalog, or a Python file; None: the folder's.
    auto_config: bool = False  # Whether OpenNMT-tf was called with it.
    source_spm: str | None = None  # What cut the sources before.
    target_spm: str | None = None  # What cut the targets before.
    vocab_file: str | None = None  # Of a SavedModel of ours.
    source_lang: str = "en"  # Language of the sources.
    target_lang: str = "de"  # Language of the targets.


# OpenNMT-tf's recipe, as far as it suits a model that knows something already.
_TRAINING = into_model_dir.TRAINING_ON | {"adam_beta2": 0.998}


@dataclass(frozen=True)
class OpenNMTModel:
    """A model that was read and checked.

    Attributes:
        prefix: of the file of variables.
        hparams: of the model and its search, by our names.
        weights: float32, by our names.
        tokenizer: of both sides.
        used: variables that became the model.
        unused: what did not, by kind.
        pieces_known: see the function of this name.
    """

    prefix: Path
    hparams: dict[str, Any]
    weights: Arrays
    tokenizer: MarianTokenizer
    used: int
    unused: dict[str, list[str]]
    pieces_known: dict[str, tuple[int, int]]

    def build(self, hparams: HParams) -> Transformer:
        """Builds the model with its weights."""
        size = self.tokenizer.target_vocab_size
        return into_model_dir.build(hparams, size, self.weights)

    def training_hparams(self) -> HParams:
        """Returns the hyper-parameters with which it can be trained on.

        UserError: they contradict each other.
        """
        return HParams(**_TRAINING | self.hparams)


def read_model(source: Source, variables: Variables | None = None) -> OpenNMTModel:
    """Reads and checks what OpenNMT-tf left.

    UserError: something is missing, damaged, of another model, or of a kind that is not
    supported here.
    """
    variables = variables or Variables(source.checkpoint)
    folder = source.checkpoint
    if not folder.is_dir():
        folder = folder.parent
    if not source.config:
        raise UserError(
            f"--checkpoint {source.checkpoint}: a model of OpenNMT-tf needs --config, "
            "the configuration of its training (data.yml), which names its vocabularies"
        )
    description = described(source.model, folder)
    ends = source.auto_config and description.name in ENDS_SOURCE
    config = read_config(source.config, folder, ends, source.auto_config)
    source_side, target_side = config.vocabularies()
    hparams, weights = read_variables(variables, description, source_side, target_side)
    starts_source, ends_source = config.marks
    models = (
        config.piece_model("source", source.source_spm),
        config.piece_model("target", source.target_spm),
    )
    known = pieces_known(
        (models[0], source_side), (models[1], target_side or source_side)
    )
    tokenizer = MarianTokenizer.from_pieces(
        *models,
        source_side.ours,
        None if target_side is None else target_side.ours,
        source_start=START if starts_source else None,
        labels=False,
    )
    return OpenNMTModel(
        variables.prefix,
        hparams | {"source_end": ends_source} | config.search(),
        weights,
        tokenizer,
        variables.taken,
        variables.unused() | {"settings of the search": config.search_left()},
        known,
    )


def import_model(source: Source, model_dir: Path) -> ImportReport:
    """Makes a model directory, absent or empty before, of a model.

    Everything is read and checked before anything is written; the directory is built
    aside and then renamed. UserError: it is in use, or as `read_model`.
    """
    into_model_dir.refuse_to_replace(model_dir)
    variables = Variables(source.checkpoint)
    if is_own(variables):
        return import_own(source.checkpoint, variables, source.vocab_file, model_dir)
    model = read_model(source, variables)
    hparams = model.training_hparams()
    built = model.build(hparams)
    languages = source.source_lang, source.target_lang
    into_model_dir.write_untrained(
        model_dir, hparams, model.tokenizer, languages, built, str(model.prefix)
    )
    return ImportReport(
        model_dir=str(model_dir),
        program="OpenNMT-tf",
        weights_file=str(model.prefix),
        vocab_size=model.tokenizer.vocab_size,
        target_vocab_size=model.tokenizer.target_vocab_size,
        parameters=built.count_params(),
        used=model.used,
        unused=model.unused,
        hparams={k: v for k, v in hparams.to_dict().items() if k in model.hparams},
        source_lang=source.source_lang,
        target_lang=source.target_lang,
        pieces_known=model.pieces_known,
    )
