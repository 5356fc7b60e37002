"""Saves and loads a preset of a tiny BART before and after `t2t_repro.load`.

python tests/keras_api/bart.py MODEL_DIR FOLDER
"""

import sys
from pathlib import Path

import keras_nlp
import numpy as np

VOCABULARY = ("<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "b", "ab")


def save_and_load(folder: Path) -> None:
    """Saves a random BART with its tokenizer; asserts that it loads unchanged."""
    tokenizer = keras_nlp.models.BartTokenizer(
        {token: index for index, token in enumerate(VOCABULARY)}, merges=["a b"]
    )
    task = keras_nlp.models.BartSeq2SeqLM(
        keras_nlp.models.BartBackbone(len(VOCABULARY), 1, 2, 8, 8),
        keras_nlp.models.BartSeq2SeqLMPreprocessor(tokenizer, 6, 6),
    )
    task.save_to_preset(str(folder))
    loaded = keras_nlp.models.Seq2SeqLM.from_preset(str(folder))
    for one, other in zip(task.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    ids = loaded.preprocessor.tokenizer("abba")
    np.testing.assert_array_equal(ids, [7, 6, 5])


if __name__ == "__main__":
    model_dir, work = sys.argv[1], Path(sys.argv[2])
    save_and_load(work / "first")
    import t2t_repro.layers

    save_and_load(work / "layers")
    t2t_repro.load(model_dir)
    save_and_load(work / "loaded")
