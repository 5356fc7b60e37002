"""Creates a random Marian model; translates in Transformers or CTranslate2.

    opus_mt.py TASK WORK

TASK is `make`, `transformers` or `ctranslate2`. WORK is a JSON object with the sizes
and the `folder` of the model, and CTranslate2's `compute_type`. A request is a batch of
sentences, lists of ids of equal length. The script requires transformers, torch,
sentencepiece, sacremoses and ctranslate2.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
from turns import turns

CORES = len(os.sched_getaffinity(0))


def make(work):
    """Writes a random model with Transformers and converts it to CTranslate2.

    EOS has probability 0, so that all translations have the maximum length.
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
    special = {"pad_token_id": padding, "decoder_start_token_id": padding}
    special.update(eos_token_id=0, forced_eos_token_id=0)
    torch.manual_seed(work["seed"])
    config = MarianConfig(
        vocab_size=size,
        d_model=work["d_model"],
        **sides,
        activation_function="swish",
        scale_embedding=True,
        init_std=0.05,
        **special,
    )
    model = MarianMTModel(config)
    with torch.no_grad():
        model.model.shared.weight[padding] = 0
    model.final_logits_bias[0, 0] = -1e4
    model.generation_config.update(
        num_beams=work["beam_size"],
        max_length=work["steps"] + 1,  # Includes the start token.
        bad_words_ids=[[padding]],
        renormalize_logits=True,
        **special,
    )
    folder = Path(work["folder"])
    model.save_pretrained(folder)
    TransformersConverter(str(folder)).convert(str(folder / "ctranslate2"))


def transformers(work):
    """Returns a search function for ids (rows, length)."""
    import torch
    from transformers import MarianMTModel

    torch.set_num_threads(CORES)
    model = MarianMTModel.from_pretrained(work["folder"]).eval()

    @torch.inference_mode()
    def search(ids):
        model.generate(torch.tensor(ids, dtype=torch.int64))

    return search


def ctranslate2(work):
    """Returns a search function like `transformers` that uses all cores for a batch."""
    from ctranslate2 import Translator

    folder = Path(work["folder"])
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    names = np.array(list(vocabulary))
    translator = Translator(
        str(folder / "ctranslate2"),
        compute_type=work["compute_type"],
        intra_threads=CORES,
    )

    def search(ids):
        translator.translate_batch(
            names[ids].tolist(),
            beam_size=work["beam_size"],
            min_decoding_length=work["steps"],
            max_decoding_length=work["steps"],
        )

    return search


def main():
    """Runs the task for each request."""
    task, work = sys.argv[1], json.loads(sys.argv[2])
    if task == "make":
        for _ in turns():
            make(work)
        return
    search = {"transformers": transformers, "ctranslate2": ctranslate2}[task](work)
    for request, _ in turns():
        search(np.array(request))


if __name__ == "__main__":
    main()
