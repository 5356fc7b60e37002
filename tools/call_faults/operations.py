"""Operations whose system calls fail, with the files that they start from."""

import importlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from t2t_repro import export, train

HPARAMS = "tiny_files.yaml,eval_steps=0,warmup_steps=100"
_DATA = "--problem files --data_dir data"
_TRAIN = f"--hparams {HPARAMS} {_DATA} --model_dir model --no-fast"
_T2T_SET = "transformer_base"
_T2T = {"hidden_size": 16, "filter_size": 32, "num_heads": 2, "num_hidden_layers": 1}


class Operation(NamedTuple):
    """Command whose calls fail.

    Attributes:
        command: Module of the command and its flags. Paths are relative to its folder.
        whole: Patterns of the folders that have all their files or do not exist.
        prepare: Function that adds the command's inputs to a folder with a trained
            model; None if it needs no others.
    """

    command: str
    whole: tuple[str, ...] = ()
    prepare: Callable[[], object] | None = None


def train_model() -> None:
    """Trains the tests' tiny model in the current folder, up to step 4."""
    tiny: Any = importlib.import_module("tests.tiny")
    tiny.write_corpus(Path("data"))
    tiny.write_hparams(Path())
    for path in Path("data").glob("test.*"):
        path.unlink()
    train.main([*_TRAIN.split(), "--train_steps", "4"])


def _remove_data() -> None:
    shutil.rmtree("data/encoded")


def _write_marian() -> None:
    module: Any = importlib.import_module("tests.interop.marian.small_marian")
    module.SmallMarian().write(Path("marian"))


def _write_export() -> None:
    export.main(["--model_dir", "model", "--export_dir", "saved"])


def _write_t2t() -> None:
    """Writes a checkpoint of tensor2tensor, whose weights are zeros."""
    import numpy as np

    from t2t_repro.interop.source import variable_shapes
    from t2t_repro.interop.tensor2tensor import (
        hparams,
        importer,
        sets,
        variable_names,
    )
    from t2t_repro.runs.tensor_file import write_tensors
    from t2t_repro.tokenizers.vocabulary import build_vocabulary

    vocabulary = Path("vocab.subwords")
    lines = Path("data/train.en").read_text(encoding="utf-8").splitlines()
    build_vocabulary("wordpiece", lines, 100, vocabulary)
    tokenizer = importer.load_vocabulary(vocabulary)
    ours = hparams.translate_hparams(sets.load(_T2T_SET) | _T2T, tokenizer.vocab_size)
    shapes = variable_shapes(ours, tokenizer)
    theirs = variable_names.list_t2t_shapes(shapes, ours.norm, ())
    values = {name: np.zeros(shape, np.float32) for name, shape in theirs.items()}
    write_tensors(Path("model.ckpt-1"), {**values, "global_step": np.int64(1)})


_IMPORTED = ("imported", "imported/checkpoints/*")
OPERATIONS = {
    "checkpoint": Operation("call_faults.recorded", ("model/checkpoints/*",)),
    "resume": Operation(
        f"t2t_repro.train {_TRAIN} --train_steps 6",
        ("model/checkpoints/*", "model/averaged", "model/best_bleu/*"),
    ),
    "average": Operation("t2t_repro.average --model_dir model", ("model/averaged",)),
    "datagen": Operation(
        f"t2t_repro.datagen --hparams {HPARAMS} {_DATA} --workers 1",
        ("data/encoded/*/train", "data/encoded/*/val"),
        _remove_data,
    ),
    "export": Operation(
        "t2t_repro.export --model_dir model --export_dir export", ("export/*",)
    ),
    "translate": Operation(
        "t2t_repro.translate --model_dir model --no-xla --window 2 --input_file "
        "data/val.en --output_file out.txt"
    ),
    "import_t2t": Operation(
        "t2t_repro.import_t2t --checkpoint model.ckpt-1 --vocab_file vocab.subwords "
        f"--t2t_hparams_set {_T2T_SET} --t2t_hparams "
        f"{','.join(f'{k}={v}' for k, v in _T2T.items())} --model_dir imported",
        _IMPORTED,
        _write_t2t,
    ),
    "import_marian": Operation(
        "t2t_repro.import_marian --folder marian --model_dir imported",
        _IMPORTED,
        _write_marian,
    ),
    "import_opennmt": Operation(
        "t2t_repro.import_opennmt --checkpoint saved/1 --model_dir imported",
        _IMPORTED,
        _write_export,
    ),
}
