"""Readers of untrusted files, and inputs for them.

An input of a target is one byte, the number of a part of the files, and the contents of
this part. All other files stay valid.
"""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from t2t_repro import hparams
from t2t_repro.command_line.error_lines import error_line
from t2t_repro.data import skipped_pairs
from t2t_repro.data.shards import load_shards
from t2t_repro.formats import documents
from t2t_repro.formats.pairs import read_pairs
from t2t_repro.hub.tokenizer import TransformerTokenizer
from t2t_repro.interop.formats.npz import read_npz
from t2t_repro.interop.formats.safetensors import read_safetensors
from t2t_repro.interop.formats.torch_file import read_torch
from t2t_repro.interop.marian import importer as marian
from t2t_repro.interop.opennmt import importer as opennmt
from t2t_repro.interop.opennmt.description import read_description
from t2t_repro.interop.tensor2tensor import hparams as t2t_hparams
from t2t_repro.interop.tensor2tensor import importer as tensor2tensor
from t2t_repro.interop.tensor2tensor.checkpoint import T2TCheckpoint
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.training.metrics_log import MetricsLog
from tests import valid_files as valid
from tests.interop.opennmt import vectors

TEXTS = ["one two", "fünf \\233; _ \U0001f600 nine", ""]


class Target(NamedTuple):
    """Reader of files.

    Attributes:
        prepare: Writes valid files into an empty folder and returns their parts.
        read: Reads the files at the path of a part.
    """

    prepare: Callable[[Path], Sequence[valid.Part]]
    read: Callable[[Path], object]


class Readers:
    """Readers of one target in a folder with its files.

    Args:
        target: The target.
        folder: Empty folder.
    """

    def __init__(self, target: Target, folder: Path) -> None:
        self.parts, self._read = target.prepare(folder), target.read

    def seeds(self) -> list[bytes]:
        """Returns the input of each part with its valid contents."""
        return [bytes([n]) + part.contents for n, part in enumerate(self.parts)]

    def read(self, data: bytes) -> bool:
        """Reads the files of an input; returns whether they were accepted.

        Raises any exception that a command would not print as one line.
        """
        part = self.parts[data[0] % len(self.parts) if data else 0]
        part.write(data[1:])
        try:
            with warnings.catch_warnings(action="ignore"):
                self._read(part.path)
        except Exception as error:
            if error_line(error) is None:
                raise
            return False
        finally:
            part.write(part.contents)
        return True


def _read_tensor2tensor(folder: Path) -> object:
    values = t2t_hparams.read_json(folder / "hparams.json")
    return tensor2tensor.read(folder, values, folder / "vocab.subwords")


def _read_t2t_names(prefix: Path) -> None:
    checkpoint = T2TCheckpoint(prefix)
    for name, shape in checkpoint.shapes.items():
        checkpoint.store.take(name, *shape)
    checkpoint.check_tables(18, 18, 8, shared=True)


def _read_vocabulary(path: Path) -> None:
    """Reads a vocabulary with TensorFlow, and as keras-hub's and clients' tokenizer."""
    tokenizer = load_tokenizer(path)
    tokenizer.decode(tokenizer.encode(TEXTS))
    plain = TransformerTokenizer(path)
    plain.detokenize([plain.encode(text) for text in TEXTS])


def _read_shards(directory: Path) -> None:
    pairs = load_shards(directory)
    pairs.gather(np.arange(min(len(pairs), 100)))
    skipped_pairs.read_skipped_pairs(directory)


def _read_hyper_parameters(path: Path) -> None:
    hparams.load(str(path))
    hparams.read(path)


def _read_model_directory(path: Path) -> None:
    directory = ModelDir(path)
    directory.hparams(), directory.tokenizer(), directory.result()
    for name in ("best", "latest", "averaged", "best_bleu"):
        checkpoint = directory.checkpoint(name)
        checkpoint.meta()
        tensors = checkpoint.tensors()
        _ = [tensors.read(each) for each in tensors.shapes()]
    MetricsLog(path / "training_log.tsv", ("step", "loss")).steps()


def _read_pairs(path: Path) -> None:
    list(read_pairs(path, "en", "de"))


def _read_document(path: Path) -> None:
    name = str(documents.find_format(path))
    request = documents.Request(path, "en", "de")
    document = documents.read_document(name, path.read_bytes(), request)
    document.write(document.texts)


TARGETS = {
    "torch": Target(valid.write_torch, read_torch),
    "safetensors": Target(valid.write_safetensors, read_safetensors),
    "npz": Target(valid.write_npz, read_npz),
    "marian": Target(valid.write_marian, marian.read),
    "transformers": Target(valid.write_transformers, marian.read),
    "tensor2tensor": Target(valid.write_tensor2tensor, _read_tensor2tensor),
    "t2t_hparams": Target(
        valid.write_t2t_hparams,
        lambda path: t2t_hparams.translate_hparams(t2t_hparams.read_json(path), 18),
    ),
    "t2t_names": Target(valid.write_t2t_names, _read_t2t_names),
    "opennmt": Target(valid.write_opennmt, vectors.read_files),
    "opennmt_description": Target(
        valid.write_descriptions,
        lambda path: read_description(None, path).hparams(),
    ),
    "saved_model": Target(valid.write_saved_model, opennmt.read),
    "word_pieces": Target(valid.write_vocabulary(".subwords"), _read_vocabulary),
    "sentencepiece": Target(valid.write_vocabulary(".model"), _read_vocabulary),
    "two_vocabularies": Target(valid.write_vocabulary(".sides"), _read_vocabulary),
    "marian_vocabulary": Target(valid.write_vocabulary(".marian"), _read_vocabulary),
    "shards": Target(valid.write_encoded_data, _read_shards),
    "hyper_parameters": Target(valid.write_hyper_parameters, _read_hyper_parameters),
    "model_directory": Target(valid.write_model_directory, _read_model_directory),
    "pairs_xml": Target(
        valid.write_pairs(".tmx", ".xlf", ".xliff", ".xml", ".sgm"), _read_pairs
    ),
    "pairs_text": Target(
        valid.write_pairs(".po", ".tsv", ".csv", ".jsonl"), _read_pairs
    ),
    "archives": Target(valid.write_archives, _read_pairs),
    "documents": Target(valid.write_documents, _read_document),
}
