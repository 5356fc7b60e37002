"""Importer of tensor2tensor checkpoints."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_repro.interop.source import FINE_TUNING, Source, variable_shapes
from t2t_repro.interop.tensor2tensor.checkpoint import T2TCheckpoint
from t2t_repro.interop.tensor2tensor.hparams import find_ignored, translate_hparams
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.word_piece_tokenizer import WordPieceTokenizer


def read(
    checkpoint: Path,
    hparams: Mapping[str, Any],
    vocab_file: Path,
    target_space_id: int = 0,
) -> Source:
    """Reads and checks a model with its Adam state.

    Args:
        checkpoint: Prefix, file or folder of the checkpoint.
        hparams: tensor2tensor's hyper-parameters by name.
        vocab_file: Path of the subword vocabulary.
        target_space_id: Id of the target language (problem.py:SpaceID).

    Returns:
        The model in this package's form.

    Raises:
        UserError: A file is missing or damaged, the files belong to different models,
            or the model is not supported.
    """
    tokenizer = load_vocabulary(vocab_file)
    ours = translate_hparams(hparams, tokenizer.vocab_size, target_space_id)
    file = T2TCheckpoint(checkpoint)
    ours = ours.replace(attention_bias=file.attention_bias)
    shapes = variable_shapes(ours, tokenizer)
    shared = "embedding/table" in shapes
    rows, _ = shapes["embedding/table" if shared else "softmax/table"]
    file.check_tables(tokenizer.vocab_size, rows, ours.d_model, shared)
    weights = file.weights(shapes, ours.norm)
    used = file.store.used
    betas = {"beta1": ours.adam_beta1, "beta2": ours.adam_beta2}
    moments, reason = file.moments(shapes, ours.norm, betas)
    step = file.step()
    notes = [
        f"the batch size is that of one GPU, {ours.tokens_per_batch:,} positions per "
        "side; for training like on several GPUs, increase tokens_per_batch and "
        "max_tokens_per_device"
    ]
    if reason:
        ours = ours.replace(**FINE_TUNING)
        notes.append(
            f"the checkpoint is of step {step:,}; further training begins at step 0, "
            f"with {ours.warmup_steps} warm-up steps to a learning rate of "
            f"{ours.learning_rate_scale}"
        )
        step = 0
    unused = file.unused()
    without_meaning = [f"{k}={v}" for k, v in find_ignored(hparams).items()]
    return Source(
        program="tensor2tensor",
        weights_file=file.prefix,
        hparams=ours,
        tokenizer=tokenizer,
        weights=weights,
        used=used,
        unused=unused | {"hyper-parameters without meaning here": without_meaning},
        every_array=not unused,
        step=step,
        moments=moments,
        adam=reason or "imported",
        notes=tuple(notes),
    )


def load_vocabulary(path: Path) -> WordPieceTokenizer:
    """Returns tensor2tensor's tokenizer, which is saved as `vocab.subwords`.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise UserError(f"--vocab_file {path}: {error.strerror}") from None
    tokenizer = WordPieceTokenizer(contents, path)
    tokenizer.file_name = "vocab.subwords"
    return tokenizer
