"""Position signals and activations that only models of other programs have."""

from keras import ops

from t2t_repro.layers.feed_forward import ACTIVATIONS
from t2t_repro.layers.functional import Tensor
from t2t_repro.layers.position import FORMULAS, sinusoid, sinusoid_paper


def sinusoid_halves(positions: Tensor, d_model: int) -> Tensor:
    """The paper's frequencies in tensor2tensor's order: all sines, then all cosines.

    Transformers and CTranslate2 give it to Marian's models (transformers
    modeling_marian.py:MarianSinusoidalPositionalEmbedding). Arguments and result are
    those of `sinusoid_paper`.
    """
    pairs = sinusoid_paper(positions, d_model)
    return ops.concatenate([pairs[..., 0::2], pairs[..., 1::2]], axis=-1)


def sinusoid_from_one(positions: Tensor, d_model: int) -> Tensor:
    """`sinusoid` of positions counted from 1, as OpenNMT-tf's (layers/position.py)."""
    return sinusoid(positions + 1, d_model)


def gelu(x: Tensor) -> Tensor:
    """GELU without approximation (Hendrycks & Gimpel 2016, arXiv:1606.08415)."""
    return ops.gelu(x, approximate=False)


def gelu_sigmoid(x: Tensor) -> Tensor:
    """The approximation of GELU that Marian had up to version 1.12.0."""
    return x * ops.sigmoid(1.702 * x)


FORMULAS["sinusoid_halves"] = sinusoid_halves
FORMULAS["sinusoid_from_one"] = sinusoid_from_one
ACTIVATIONS |= {"swish": ops.silu, "gelu": gelu, "gelu_sigmoid": gelu_sigmoid}
