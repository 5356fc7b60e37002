"""Trains OpenNMT-tf's Transformer on random ids, independently of t2t_repro.

    opennmt_training.py WORK

WORK is a JSON object, `Work` of `benchmarks/work.py`. Model, loss, optimizer and step
(`Model.train`) are OpenNMT-tf's, with dropout only where the paper has it.
"""

import json
import os
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import opennmt
import tensorflow as tf
from turns import memory, steps

SPECIAL = ["<blank>", "<s>", "</s>"]


def transformer(work):
    """Returns OpenNMT-tf's Transformer with a shared vocabulary."""
    inputters = [
        opennmt.inputters.WordEmbedder(embedding_size=work["d_model"]) for _ in range(2)
    ]
    model = opennmt.models.Transformer(
        *inputters,
        num_layers=work["num_layers"],
        num_units=work["d_model"],
        num_heads=work["num_heads"],
        ffn_inner_dim=work["d_ff"],
        dropout=work["dropout"],
        attention_dropout=0.0,
        ffn_dropout=0.0,
        share_embeddings=opennmt.models.EmbeddingsSharingLevel.ALL,
        pre_norm=False,
    )
    # OpenNMT-tf adds the unknown word to the vocabulary.
    words = SPECIAL + [f"w{n}" for n in range(work["vocab_size"] - len(SPECIAL) - 1)]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as vocabulary:
        vocabulary.write("\n".join(words))
        vocabulary.flush()
        sides = ("source_vocabulary", "target_vocabulary")
        params = {
            "label_smoothing": work["label_smoothing"],
            "optimizer": "Adam",
            "optimizer_params": {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9},
            "learning_rate": 1e-4,
        }
        model.initialize(dict.fromkeys(sides, vocabulary.name), params=params)
    return model


def main():
    """Runs the requested training steps."""
    before = memory("VmRSS")
    work = json.loads(sys.argv[1])
    model = transformer(work)
    optimizer = model.get_optimizer()
    model.create_variables(optimizer)
    shape = [work["batch_size"], work["length"]]
    inputs, targets = (
        tf.random.uniform(shape, len(SPECIAL), work["vocab_size"], tf.int32)
        for _ in range(2)
    )
    lengths = tf.fill(shape[:1], work["length"])
    features = {"ids": inputs, "length": lengths}
    labels = {"ids": targets, "ids_out": targets, "length": lengths}

    @tf.function
    def step(features, labels):
        return model.train(features, labels, optimizer)

    for _ in steps(before):
        float(step(features, labels))


if __name__ == "__main__":
    main()
