"""Checks of the number of parameters of tensor2tensor's hyper-parameter sets."""

from __future__ import annotations

import math
import re

from golden_checks.sheet import Sheet
from t2t_repro.interop.tensor2tensor import sets as t2t_sets
from t2t_repro.interop.tensor2tensor.hparams import translate_hparams
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.system.errors import UserError

SET = "transformer_base"
"""Hyper-parameter set in each file of parameter counts."""

_VOCABULARY = re.compile(r"_vocab(\d+)\.json$")  # Size of the vocabulary.
_SHARDS = 16  # tensor2tensor counts each shard of the embedding table as a variable.
# tensor2tensor's groups of variables -> text in our names of these variables.
_GROUPS = {
    "attention": "_attention/",
    "ffn": "feed_forward/",
    "layer_norm": "norm/",
    "embedding(tied)": "embedding/table",
    "target_space_embedding": "target_space/",
}


def check(sheet: Sheet) -> None:
    """Builds the model of each set and compares its parameter counts.

    The file name contains the vocabulary size.
    """
    match = _VOCABULARY.search(sheet.file)
    if match is None:
        raise UserError(f"{sheet.file}: the file name must end in _vocabSIZE.json")
    vocab_size = int(match[1])
    for name in sheet.arrays:
        hparams = translate_hparams(t2t_sets.load(name), vocab_size)
        model = Transformer.from_hparams(hparams, vocab_size)
        model.build()
        sizes = {n: math.prod(v.shape) for n, v in named_variables(model).items()}
        groups = {
            group: sum(size for n, size in sizes.items() if part in n)
            for group, part in _GROUPS.items()
        }
        counts = {"total": sum(sizes.values()), "variables": len(sizes) - 1 + _SHARDS}
        sheet.compare_equal(name, {"groups": groups, **counts})
