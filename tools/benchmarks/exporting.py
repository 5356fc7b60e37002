"""Task of `benchmark_export.py`: exports a model and translates with it in process."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.peers.turns import turns
from t2t_repro import hparams as hparam_sets
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.model_dir import build_model
from t2t_repro.serving.saved_model import write_saved_model
from t2t_repro.serving.signatures import ServingModule
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.translation.options import TranslationOptions
from t2t_repro.translation.translator import Translator


def translator(fields: Mapping[str, Any]) -> None:
    """Exports random weights to `export_dir`, then translates each request's texts.

    Requests have the form of `peers/run_export.py`. An answer has the translations
    (`outputs`), their number of tokens including EOS (`tokens`), the number of
    `parameters` and `export_seconds`.
    """
    settings = Namespace(**fields)
    hparams = hparam_sets.load(settings.hparams)
    tokenizer = load_tokenizer(settings.vocab_file)
    model = build_model(hparams, tokenizer.vocab_size)
    search = TranslationOptions().search(hparams, tokenizer)
    started = time.perf_counter()
    module = ServingModule([model], tokenizer, search)
    write_saved_model(module, Path(settings.export_dir) / "1")
    variables = named_variables(model).values()
    constants = {
        "export_seconds": time.perf_counter() - started,
        "parameters": sum(int(np.prod(variable.shape)) for variable in variables),
    }
    translator = Translator(model, tokenizer, search)
    for request, answer in turns():
        lines = tf.constant(request["inputs"]["text"])
        began = time.perf_counter()
        ids, _ = translator.translate_ids(translator.encode(lines))
        texts = translator.decode(ids[:, 0]).numpy()
        answer["seconds"] = time.perf_counter() - began
        answer["outputs"] = {"translations": [text.decode() for text in texts]}
        answer["tokens"] = int(tf.math.count_nonzero(ids[:, 0]))
        answer |= constants
