"""keras-hub's `generate` in the search benchmarks; see `decoding`.

    python -m benchmarks.keras_hub_search WORK

WORK is a JSON object: the settings, and `sampler`, the name of a class. The model is a
task of `t2t_repro.hub` that gets ids, compiled by XLA on the backend that
KERAS_BACKEND names.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from benchmarks.decoding import Ids, search_in_turn
from benchmarks.in_turn import Contender

EOS = 1


def contender(name: str, work: Mapping[str, Any], backend: str) -> Contender:
    """Returns a process that runs this module on a backend of Keras."""
    command = [sys.executable, "-m", "benchmarks.keras_hub_search", json.dumps(work)]
    return Contender(name, command, variables={"KERAS_BACKEND": backend})


def main() -> None:
    """Answers requests with translations of `steps` tokens."""
    settings = Namespace(**json.loads(sys.argv[1]))
    import keras
    import keras_hub
    import numpy as np

    from t2t_repro.hub import (
        BeamSearchSampler,
        TransformerBackbone,
        TransformerSeq2SeqLM,
    )

    keras.utils.set_random_seed(settings.seed)
    backbone = TransformerBackbone(
        settings.vocab_size,
        d_model=settings.d_model,
        d_ff=4 * settings.d_model,
        num_heads=settings.d_model // 64,
        num_layers=settings.num_layers,
    )
    # Neither search can end a hypothesis: all run to the last position.
    ours = BeamSearchSampler(settings.beam_size, settings.alpha, never=(EOS,))
    samplers = {
        "BeamSearchSampler": ours,
        "BeamSampler": keras_hub.samplers.BeamSampler(settings.beam_size),
    }
    task = TransformerSeq2SeqLM(backbone)
    task.compile(sampler=samplers[settings.sampler], jit_compile=True)

    def translate(batches: Ids) -> list[list[int]]:
        found = []
        for rows in batches:
            targets = np.zeros((len(rows), 1 + settings.steps), np.int32)
            inputs = {
                "encoder_token_ids": rows,
                "encoder_padding_mask": np.ones_like(rows),
                "decoder_token_ids": targets,
                "decoder_padding_mask": (np.arange(targets.shape[1]) == 0) + targets,
            }
            outputs = task.generate(inputs, stop_token_ids=None)
            found += outputs["decoder_token_ids"][:, 1:].tolist()
        return found

    search_in_turn(settings, translate)


if __name__ == "__main__":
    main()
