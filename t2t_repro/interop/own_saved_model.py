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
from t2t_repro.hparams.fields import CPU_DEFAULTS
from t2t_repro.hparams.settings import parse_overrides
from t2t_repro.interop.formats.object_graph import SAVED_MODEL, ObjectStore
from t2t_repro.interop.source import Source, variable_shapes
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.tokenizer import Tokenizer

_CARD = Path("assets.extra") / "README.md"
_HEAD = re.compile(r"that translates (\S+) into (\S+): [\d,]+ parameters, (\w+)\.")
_VOCABULARY = re.compile(r"Vocabulary `([^`]+)` \(SHA-256 ([0-9a-f]{64})\)")
_HPARAMS = re.compile(r"^## Hyper-parameters\n+```yaml\n(.*?)^```", re.S | re.M)


def is_own(store: ObjectStore) -> bool:
    """Whether variables are those of a SavedModel that `export` wrote."""
    return store.is_saved_model and store.key("weights/0") is not None


def read(folder: Path, store: ObjectStore, vocab_file: str | None) -> Source:
    """Reads and checks a SavedModel.

    Args:
        folder: Of the SavedModel.
        store: Its variables.
        vocab_file: Its vocabulary; None: the one in its graph.

    Raises:
        UserError: The model card is missing or altered, the vocabulary is missing or
            another, or the SavedModel holds several models.
    """
    card = _card(folder)
    source_lang, target_lang, precision = _found(_HEAD, card, folder).groups()
    if precision not in ("float32", "bfloat16"):
        raise UserError(
            f"{folder} is in {precision}, which does not hold the weights themselves; "
            "take an export in float32 or bfloat16"
        )
    name, fingerprint = _found(_VOCABULARY, card, folder).groups()
    hparams = _hparams(folder, _found(_HPARAMS, card, folder)[1])
    tokenizer = _tokenizer(folder, vocab_file, name, fingerprint)
    shapes = variable_shapes(hparams, tokenizer)
    weights = {
        ours: store.take(f"weights/{number}", *shape)
        for number, (ours, shape) in enumerate(shapes.items())
    }
    if store.key(f"weights/{len(weights)}") is not None:
        raise UserError(
            f"{folder} holds several models that translate as one; a model directory "
            "holds one"
        )
    return Source(
        program="t2t_repro, a SavedModel",
        weights_file=folder,
        hparams=hparams,
        tokenizer=tokenizer,
        weights=weights,
        used=store.used,
        languages=(source_lang, target_lang),
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
