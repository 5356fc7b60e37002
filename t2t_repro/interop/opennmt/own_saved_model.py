"""From a SavedModel of this package's own back to a model directory.

Its model card tells languages, vocabulary and hyper-parameters; its variables stand in
the order of the model's; a SentencePiece vocabulary is in its graph.
"""

import hashlib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from t2t_repro.hparams import HParams
from t2t_repro.hparams.fields import CPU_DEFAULTS, that_change
from t2t_repro.hparams.settings import parse_overrides
from t2t_repro.interop import into_model_dir
from t2t_repro.interop.import_report import ImportReport
from t2t_repro.interop.opennmt.variables import SAVED_MODEL, Variables
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.model_dir import build_model
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.tokenizer import Tokenizer

_CARD = Path("assets.extra") / "README.md"
_HEAD = re.compile(r"that translates (\S+) into (\S+): [\d,]+ parameters, (\w+)\.")
_VOCABULARY = re.compile(r"Vocabulary `([^`]+)` \(SHA-256 ([0-9a-f]{64})\)")
_HPARAMS = re.compile(r"^## Hyper-parameters\n+```yaml\n(.*?)^```", re.S | re.M)
_TOLD = that_change("function")
_PROGRAM = "t2t_repro, a SavedModel"


def is_own(variables: Variables) -> bool:
    """Whether variables are those of a SavedModel that `export` wrote."""
    return variables.is_saved_model and variables.key("weights/0") is not None


def import_own(
    folder: Path, variables: Variables, vocab_file: str | None, model_dir: Path
) -> ImportReport:
    """Makes a model directory, absent or empty before, of a SavedModel.

    Args:
        folder: of the SavedModel.
        variables: its own.
        vocab_file: its vocabulary; None: the graph's.
        model_dir: folder to make.

    Raises:
        UserError: the model card is missing or altered, the vocabulary is missing or
            another, or the SavedModel holds several models.
    """
    card = _card(folder)
    *languages, precision = _found(_HEAD, card, folder).groups()
    if precision not in ("float32", "bfloat16"):
        raise UserError(
            f"{folder} is in {precision}, which does not hold the weights themselves; "
            "take an export in float32 or bfloat16"
        )
    name, fingerprint = _found(_VOCABULARY, card, folder).groups()
    hparams = _hparams(folder, _found(_HPARAMS, card, folder)[1])
    tokenizer = _tokenizer(folder, vocab_file, name, fingerprint)
    target = tokenizer.target_vocab_size
    built = build_model(hparams, tokenizer.vocab_size, target)
    wanted = named_variables(built).values()
    for number, variable in enumerate(wanted):
        variable.assign(variables.take(f"weights/{number}", *variable.shape))
    if variables.key(f"weights/{len(wanted)}") is not None:
        raise UserError(
            f"{folder} holds several models that translate as one; a model directory "
            "holds one"
        )
    source_lang, target_lang = languages
    into_model_dir.write_untrained(
        model_dir, hparams, tokenizer, (source_lang, target_lang), built, str(folder)
    )
    return ImportReport(
        model_dir=str(model_dir),
        program=_PROGRAM,
        weights_file=str(variables.prefix),
        vocab_size=tokenizer.vocab_size,
        target_vocab_size=target,
        parameters=built.count_params(),
        used=variables.taken,
        unused={},
        hparams={k: v for k, v in hparams.to_dict().items() if k in _TOLD},
        source_lang=source_lang,
        target_lang=target_lang,
    )


def _card(folder: Path) -> str:
    try:
        return (folder / _CARD).read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise UserError(
            f"{folder} has no {_CARD} that can be read, the model card, which tells "
            "its hyper-parameters; export writes it"
        ) from None


def _found(pattern: re.Pattern[str], card: str, folder: Path) -> re.Match[str]:
    found = pattern.search(card)
    if found is None:
        raise UserError(
            f"{folder / _CARD} is not as export writes it; take the unaltered one"
        )
    return found


def _hparams(folder: Path, text: str) -> HParams:
    """Reads the set in the card, a line for each value."""
    settings = ",".join(line.replace(": ", "=", 1) for line in text.splitlines())
    found = parse_overrides(HParams, settings, str(folder / _CARD))
    return HParams(**CPU_DEFAULTS | found)


def _tokenizer(
    folder: Path, vocab_file: str | None, name: str, fingerprint: str
) -> Tokenizer:
    """Returns the vocabulary of the card's fingerprint."""
    if vocab_file is not None:
        tokenizer = load_tokenizer(vocab_file)
        if tokenizer.fingerprint != fingerprint:
            raise UserError(
                f"--vocab_file {vocab_file} is not the vocabulary of {folder}, which "
                f"is {name} (SHA-256 {fingerprint})"
            )
        return tokenizer
    for contents in _piece_models(folder / SAVED_MODEL):
        if hashlib.sha256(contents).hexdigest() == fingerprint:
            with tempfile.TemporaryDirectory() as aside:
                path = Path(aside) / Path(name).name
                path.write_bytes(contents)
                return load_tokenizer(path)
    raise UserError(
        f"{folder} does not hold its vocabulary in one piece; give --vocab_file, the "
        f"file {name} of the model that was exported"
    )


def _piece_models(path: Path) -> Iterator[bytes]:
    """Yields the SentencePiece models in a SavedModel's graph."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from tensorflow.core.protobuf import saved_model_pb2

    try:
        saved = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    except (OSError, DecodeError):
        raise UserError(f"{path} cannot be read; it is damaged") from None
    for graph in saved.meta_graphs:
        functions = (f.node_def for f in graph.graph_def.library.function)
        for nodes in (graph.graph_def.node, *functions):
            for node in nodes:
                if node.op == "SentencepieceOp":
                    yield node.attr["model"].s
