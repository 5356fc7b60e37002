"""Estimates the GPU memory of a training step, to choose the micro-batch size."""

from t2t_repro import fast
from t2t_repro.fast.chunked_loss import CHUNK
from t2t_repro.hparams import HParams

USABLE = 0.9
"""Fraction of a GPU's memory to plan for; context and fragmentation use the rest."""

MARGIN = 1.5
"""Safety factor on `bytes_per_position`, which is accurate to 15 %."""

# Number of float32 copies per weight: value, gradient, Adam's two moments, sum over
# micro-batches, packed and unpacked sums over devices, and casts.
_COPIES = 8


def tokens_that_fit(hparams: HParams, memory: int) -> int:
    """Returns the number of positions per side that fit into `memory` bytes."""
    free = USABLE * memory - fixed_bytes(hparams)
    position = MARGIN * bytes_per_position(hparams, hparams.longest_row)
    return max(0, int(free / position))


def fixed_bytes(hparams: HParams) -> int:
    """Returns the memory in bytes that does not depend on the number of positions.

    It has all copies of the weights (see `_COPIES`), and the logits of a chunk if the
    loss is computed in chunks.
    """
    tables = 0 if hparams.share_embeddings else 2 * hparams.vocab_size
    chunk = CHUNK if _uses_chunks(hparams) else 0
    weights = matmul_weights(hparams) + tables * hparams.d_model
    return _COPIES * 4 * weights + _logit_bytes(hparams) * chunk


def matmul_weights(hparams: HParams) -> int:
    """Returns the number of weights that are multiplied in matmuls."""
    attention = 2 * hparams.num_heads * (hparams.key_size + hparams.value_size)
    encoder = attention + 2 * hparams.d_ff
    decoder = 2 * attention + 2 * hparams.d_ff
    width = (
        hparams.num_layers * encoder
        + hparams.decoder_layers * decoder
        + hparams.vocab_size
    )
    return hparams.d_model * width


def bytes_per_position(hparams: HParams, width: int) -> int:
    """Returns the activation memory in bytes of one source and one target position.

    For the backward pass, an encoder layer keeps about 12 vectors of size d_model and 2
    of size d_ff per position, a decoder layer 18 and 2, and each attention layer two
    rows of attention weights per head. The logits are kept both in the training
    precision and in float32, unless the loss is computed in chunks.

    Args:
        hparams: Hyper-parameters without "auto" for precision.
        width: Length of the rows of ids, and of the rows of attention weights.
    """
    size = 4 if hparams.precision == "float32" else 2
    layers = hparams.num_layers + hparams.decoder_layers
    attentions = layers + hparams.decoder_layers
    vectors = (12 * hparams.num_layers + 18 * hparams.decoder_layers) * hparams.d_model
    inner = 2 * layers * hparams.d_ff
    weights = 2 * attentions * hparams.num_heads * width
    logits = 0 if _uses_chunks(hparams) else hparams.vocab_size
    return size * (vectors + inner + weights) + _logit_bytes(hparams) * logits


def _uses_chunks(hparams: HParams) -> bool:
    """Returns whether the loss is computed in chunks (see `fast/chunked_loss.py`)."""
    return fast.uses("chunked_loss") and hparams.precision != "float16"


def _logit_bytes(hparams: HParams) -> int:
    """Returns the size of a logit in the training precision and in float32."""
    return 8 if hparams.precision == "float32" else 6
