"""Import of a SavedModel that `export` wrote.

The model card states the languages, vocabulary and hyper-parameters. The variables are
stored under numbers, in the model's order. The vocabulary is in a file if the
SavedModel takes ids; if it takes text, the graph contains a SentencePiece model.
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
_TOKENIZER = Path("assets.extra") / "tokenizer"
_HEAD = re.compile(r"that translates (\S+) into (\S+): [\d,]+ parameters, ([\w -]+)\.")
_VOCABULARY = re.compile(r"Vocabulary `([^`]+)` \(SHA-256 ([0-9a-f]{64})\)")
_HPARAMS = re.compile(r"^## Hyper-parameters\n+```yaml\n(.*?)^```", re.S | re.M)


def is_own(store: ObjectStore) -> bool:
    """Returns whether the variables come from a SavedModel that `export` wrote."""
    return store.is_saved_model and store.key("weights/0") is not None


def read(folder: Path, store: ObjectStore, vocab_file: str | None) -> Source:
    """Reads and checks a SavedModel.

    Args:
        folder: Folder of the SavedModel.
        store: Variables of the SavedModel.
        vocab_file: Path of the vocabulary; None extracts it from the graph.

    Returns:
        The model in this package's form.

    Raises:
        UserError: The model card is missing or altered, the vocabulary is missing or
            differs from the card's, or the SavedModel is an ensemble.
    """
    card = _card(folder)
    source_lang, target_lang, precision = _search(_HEAD, card, folder).groups()
    if precision not in ("float32", "bfloat16"):
        raise UserError(
            f"{folder} is an export in {precision}, which cannot be imported; use an "
            "export in float32 or bfloat16"
        )
    name, fingerprint = _search(_VOCABULARY, card, folder).groups()
    hparams = _hparams(folder, _search(_HPARAMS, card, folder)[1])
    tokenizer = _tokenizer(folder, vocab_file, name, fingerprint)
    shapes = variable_shapes(hparams, tokenizer)
    weights = {
        ours: store.take(f"weights/{number}", *shape)
        for number, (ours, shape) in enumerate(shapes.items())
    }
    if store.key(f"weights/{len(weights)}") is not None:
        raise UserError(
            f"{folder} is an ensemble, which cannot be imported; export one model"
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
            f"{folder}: the model card {_CARD}, which lists the hyper-parameters, is "
            "missing or unreadable; copy the folder again as export wrote it"
        ) from None


def _search(pattern: re.Pattern[str], card: str, folder: Path) -> re.Match[str]:
    match = pattern.search(card)
    if match is None:
        raise UserError(
            f"{folder / _CARD} was altered after export; restore the original file"
        )
    return match


def _hparams(folder: Path, text: str) -> HParams:
    """Parses the hyper-parameters in the card, one `name: value` per line."""
    settings = ",".join(line.replace(": ", "=", 1) for line in text.splitlines())
    values = parse_overrides(HParams, settings, str(folder / _CARD))
    return HParams(**CPU_DEFAULTS | values)


def _tokenizer(
    folder: Path, vocab_file: str | None, name: str, fingerprint: str
) -> Tokenizer:
    """Returns the vocabulary that has the fingerprint in the card."""
    if vocab_file is not None:
        tokenizer = load_tokenizer(vocab_file)
        if tokenizer.fingerprint != fingerprint:
            raise UserError(
                f"--vocab_file {vocab_file} is not the vocabulary of {folder}; give "
                f"{name} (SHA-256 {fingerprint})"
            )
        return tokenizer
    path = folder / _TOKENIZER / Path(name).name
    if path.exists():
        return _tokenizer(folder, str(path), name, fingerprint)
    for contents in _piece_models(folder / SAVED_MODEL):
        if hashlib.sha256(contents).hexdigest() == fingerprint:
            with tempfile.TemporaryDirectory() as temporary:
                path = Path(temporary) / Path(name).name
                path.write_bytes(contents)
                return load_tokenizer(path)
    raise UserError(
        f"{folder} does not contain its vocabulary file; give --vocab_file, the file "
        f"{name} of the exported model"
    )


def _piece_models(path: Path) -> Iterator[bytes]:
    """Yields the SentencePiece models in a SavedModel's graph."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from tensorflow.core.protobuf import saved_model_pb2

    try:
        saved = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    except (OSError, DecodeError):
        raise UserError(f"{path} is damaged; copy the SavedModel again") from None
    for graph in saved.meta_graphs:
        functions = (f.node_def for f in graph.graph_def.library.function)
        for nodes in (graph.graph_def.node, *functions):
            for node in nodes:
                if node.op == "SentencepieceOp":
                    yield node.attr["model"].s
