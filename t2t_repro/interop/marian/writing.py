"""Hyper-parameters, rows and arrays that both exports to Marian's programs share."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from t2t_repro.hparams.supported import Values
from t2t_repro.interop.formats.array_store import Arrays
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.marian_tokenizer import MarianSide, MarianTokenizer
from t2t_repro.tokenizers.tokenizer import EOS_ID, PAD_ID, Tokenizer


def _head_width(values: Mapping[str, Any]) -> list[int | None]:
    return [None, values["d_model"] // values["num_heads"]]


EVERY_VALUE: tuple[str, ...] = (
    *("vocab_size", "share_embeddings", "tie_target", "d_model", "d_ff"),
    *("decoder_d_ff", "num_layers", "num_decoder_layers", "num_heads"),
    *("max_position", "beam_size", "alpha", "allow_unknown"),
    # The limits of the other programs have other forms, see the writers.
    *("decode_extra_length", "decode_length_factor"),
)
"""Hyper-parameters that both formats support with every value."""

REQUIRED: dict[str, Values] = {
    "tokenizer": ("marian",),
    "search": ("marian", "transformers"),
    "attention_bias": (True,),
    "softmax_bias": (True,),
    "target_space_embedding": (False,),
    "d_k": _head_width,
    "d_v": _head_width,
}
"""Values of imported models, which both formats require."""

REMEDY = "export a saved_model"


def read_arrays(model: Transformer) -> Arrays:
    """Returns the model's variables by name."""
    return {name: np.asarray(v) for name, v in named_variables(model).items()}


def check_tokenizer(tokenizer: Tokenizer, export: str) -> MarianTokenizer:
    """Returns the tokenizer; raises UserError if the formats cannot represent it."""
    if not isinstance(tokenizer, MarianTokenizer):
        raise UserError(
            f"{export} supports only the vocabulary of an imported model, not "
            f"{tokenizer.file_name}; {REMEDY}"
        )
    if tokenizer.source_start is not None:
        raise UserError(
            f"{export} cannot insert {tokenizer.source_start} before every source, as "
            "this vocabulary requires; export a saved_model"
        )
    return tokenizer


def order_rows(side: MarianSide) -> list[int]:
    """Returns this package's ids in the order of Marian's vocabularies.

    The order is </s>, <unk>, then all others, without padding. Both sides thus have the
    same ids of the special pieces, which Transformers requires.
    """
    assert side.unknown_id is not None
    special = (EOS_ID, side.unknown_id)
    rest = (n for n in range(side.vocab_size) if n not in (PAD_ID, *special))
    return [*special, *rest]
