"""A random Marian model in Transformers, and its translations there and in CTranslate2.

    opus_mt.py TASK WORK

TASK is `make`, `transformers` or `ctranslate2`. WORK is a JSON object: the sizes, the
`folder` of the model, and `sentences`, a file of int32 (calls, rows, length) by kind of
work. Needs transformers, torch, sentencepiece, sacremoses and ctranslate2.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
from turns import turns

CORES = len(os.sched_getaffinity(0))


def make(work):
    """Writes the model as Transformers does, and as CTranslate2 makes it of that.

    EOS has probability 0, so that every translation takes all steps.
    """
    import torch
    from ctranslate2.converters import TransformersConverter
    from transformers import MarianConfig, MarianMTModel

    size, padding = work["vocab_size"], work["vocab_size"] - 1
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (
            ("layers", work["num_layers"]),
            ("attention_heads", work["d_model"] // 64),
            ("ffn_dim", 4 * work["d_model"]),
        )
    }
    torch.manual_seed(work["seed"])
    model = MarianMTModel(
        MarianConfig(
            vocab_size=size,
            d_model=work["d_model"],
            **sides,
            activation_function="swish",
            scale_embedding=True,
            init_std=0.05,
            pad_token_id=padding,
            decoder_start_token_id=padding,
            eos_token_id=0,
            forced_eos_token_id=0,
        )
    )
    with torch.no_grad():
        model.model.shared.weight[padding] = 0
    model.final_logits_bias[0, 0] = -1e4
    model.generation_config.update(
        num_beams=work["beam_size"],
        max_length=work["steps"] + 1,  # The start counts.
        bad_words_ids=[[padding]],
        renormalize_logits=True,
        pad_token_id=padding,
        decoder_start_token_id=padding,
        eos_token_id=0,
        forced_eos_token_id=0,
    )
    folder = Path(work["folder"])
    model.save_pretrained(folder)
    TransformersConverter(str(folder)).convert(str(folder / "ctranslate2"))


def transformers(work):
    """Returns a search: ids of sentences (rows, length) to ids (rows, steps)."""
    import torch
    from transformers import MarianMTModel

    torch.set_num_threads(CORES)
    model = MarianMTModel.from_pretrained(work["folder"]).eval()

    @torch.inference_mode()
    def search(ids):
        found = model.generate(torch.tensor(ids, dtype=torch.int64))
        return found[:, 1:].tolist()

    return search


def ctranslate2(work):
    """Returns a search as `transformers` does, one batch over all cores."""
    from ctranslate2 import Translator

    folder = Path(work["folder"])
    numbers = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    names = np.array(list(numbers))
    translator = Translator(
        str(folder / "ctranslate2"), compute_type="float32", intra_threads=CORES
    )

    def search(ids):
        found = translator.translate_batch(
            names[ids].tolist(),
            beam_size=work["beam_size"],
            min_decoding_length=work["steps"],
            max_decoding_length=work["steps"],
        )
        return [[numbers[name] for name in each.hypotheses[0]] for each in found]

    return search


def main():
    """Does the task whenever it is its turn."""
    task, work = sys.argv[1], json.loads(sys.argv[2])
    if task == "make":
        for _ in turns():
            make(work)
        return
    search = {"transformers": transformers, "ctranslate2": ctranslate2}[task](work)
    with np.load(work["sentences"]) as file:
        sentences = {name: file[name] for name in file.files}
    for request, answer in turns():
        answer["ids"] = [row for ids in sentences[request] for row in search(ids)]


if __name__ == "__main__":
    main()
