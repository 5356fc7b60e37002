"""Records reference data of OpenNMT-tf 2.32 for small models.

    record_vectors.py FOLDER

Writes FOLDER/opennmt_NAME.npz for each of `CASES`: OpenNMT-tf's files of a model with
random weights, and its outputs. Requires OpenNMT-tf but not this package.
"""

import io
import os
import random
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import opennmt
import sentencepiece
import tensorflow as tf
import yaml
from opennmt.models import EmbeddingsSharingLevel

CASES = {
    # Two vocabularies and three embedding tables.
    "base": {},
    "relative": {
        "position_encoder_class": None,
        "maximum_relative_position": 3,
        "share_embeddings": EmbeddingsSharingLevel.ALL,
    },
    "post": {
        "pre_norm": False,
        "mha_bias": False,
        "output_layer_bias": False,
        "share_embeddings": EmbeddingsSharingLevel.TARGET,
        "num_layers": 1,
    },
}
CONTROLS = {"relative": {"start": True, "end": True}, "post": {"end": True}}
SIZES = {"num_layers": (2, 1), "num_units": 8, "num_heads": 2, "ffn_inner_dim": 12}
MAX_LENGTH = 12
SEARCHES = {"greedy": (1, 0.0), "beam4": (4, 0.0), "beam4_0.6": (4, 0.6)}
SEARCHES |= {"beam6_1.5": (6, 1.5)}
ENGLISH, GERMAN = (
    "one two three four five six seven eight nine ten",
    "eins zwei drei vier fünf sechs sieben acht neun zehn",
)
WORDS = {
    side: words.split() for side, words in (("source", ENGLISH), ("target", GERMAN))
}


def lines(side, seed, count):
    """Returns random lines of number words; the sides are parallel for equal seeds."""
    draw = random.Random(seed)
    rows = [draw.choices(range(10), k=draw.randint(1, 7)) for _ in range(count)]
    return [" ".join(WORDS[side][n] for n in row) for row in rows]


def write_vocabulary(folder, sides):
    """Trains a SentencePiece model and writes the model and its vocabulary."""
    name, model = "-".join(sides), io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line for side in sides for line in lines(side, 1, 200)),
        model_writer=model,
        vocab_size=40,
        hard_vocab_limit=False,
        normalization_rule_name="identity",  # The default adds a table of 240 kB.
        minloglevel=2,
    )
    (folder / f"{name}.spm").write_bytes(model.getvalue())
    library = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [library.id_to_piece(n) for n in range(3, library.vocab_size())]
    text = "\n".join(["<blank>", "<s>", "</s>", *pieces]) + "\n"
    (folder / f"{name}.vocab").write_text(text, encoding="utf-8")
    return name


def write_config(folder, case):
    """Writes data.yml and returns its section `data` with absolute paths."""
    shared = case == "relative"
    sides = [("source", "target")] * 2 if shared else [("source",), ("target",)]
    data, files = {}, [write_vocabulary(folder, names) for names in sides]
    for side, name in zip(("source", "target"), files, strict=True):
        data[f"{side}_vocabulary"] = f"{name}.vocab"
        params = {"model": f"{name}.spm"}
        kind = {"type": "SentencePieceTokenizer", "params": params}
        data[f"{side}_tokenization"] = kind
    if case in CONTROLS:
        data["source_sequence_controls"] = CONTROLS[case]
    params = {"beam_width": 4, "length_penalty": 0.6, "coverage_penalty": 0.2}
    params["maximum_decoding_length"] = MAX_LENGTH
    config = {"model_dir": "run", "data": data, "params": params}
    (folder / "data.yml").write_text(yaml.safe_dump(config))
    return opennmt.config.try_prefix_paths(str(folder), data)


def write_description(folder, case):
    """Writes model_description.py like a user of OpenNMT-tf."""
    arguments = SIZES | CASES[case]
    levels = {v: k for k, v in vars(EmbeddingsSharingLevel).items() if type(v) is int}
    lines_of_arguments = [
        f"    {name}=onmt.models.EmbeddingsSharingLevel.{levels[value]},"
        if name == "share_embeddings"
        else f"    {name}={value!r},"
        for name, value in arguments.items()
    ]
    call = ["model = lambda: onmt.models.Transformer(", *lines_of_arguments, ")"]
    (folder / "model_description.py").write_text(
        "\n".join(["import opennmt as onmt", "", *call, ""])
    )


def build_model(data, case):
    """Returns a model with random weights that float16 represents exactly."""
    model = opennmt.models.Transformer(**SIZES | CASES[case])
    model.initialize(data, params={})
    model.create_variables()
    draw = np.random.default_rng(7)
    for variable in model.trainable_variables:
        value = draw.normal(size=variable.shape) * 0.35
        if "gamma" in variable.name:
            value += 1
        variable.assign(value.astype(np.float16).astype(np.float32))
    # Increase the probability of EOS, so that translations have different lengths.
    output = model.decoder.output_layer
    end = np.eye(model.labels_inputter.vocabulary_size, dtype=np.float32)[2]
    if output.use_bias:
        output.bias.assign(output.bias + 2 * end)
    else:
        table = model.labels_inputter.embedding
        table.assign(table * (1 + end[:, None]))
    return model


def files_of(folder):
    """Returns the bytes of all files in a folder by relative path."""
    return {
        f"file/{path.relative_to(folder)}": np.frombuffer(path.read_bytes(), np.uint8)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def outputs_of(model):
    """Returns the model's inputs, outputs and search results for a few pairs."""
    pairs = lines("source", 5, 5), lines("target", 5, 5)
    features = model.features_inputter.make_features(tf.constant(pairs[0]))
    labels = model.labels_inputter.make_features(tf.constant(pairs[1]))
    outputs, _ = model(features, labels, training=False)
    memory, _, _ = model.encoder(
        model.features_inputter(features), sequence_length=features["length"]
    )
    outputs_by_name = {
        "sources": np.array(pairs[0]),
        "targets": np.array(pairs[1]),
        "source_ids": features["ids"].numpy(),
        "source_lengths": features["length"].numpy(),
        "target_ids": labels["ids_out"].numpy(),
        "target_lengths": labels["length"].numpy(),
        "encoder_output": memory.numpy(),
        "logits": outputs["logits"].numpy(),
    }
    for name, smoothing in (("loss", 0.0), ("smoothed_loss", 0.1)):
        model.params["label_smoothing"] = smoothing
        loss, _, tokens = model.compute_loss(outputs, labels, training=True)
        outputs_by_name[name] = np.array([loss, tokens])
    return outputs_by_name | search_results(model, pairs[0])


def search_results(model, sources):
    """Returns the ids of all hypotheses of each search.

    Each source is a batch of its own, because the order of OpenNMT-tf's hypotheses can
    depend on the other rows of a batch.
    """
    results = {}
    for name, (beam, penalty) in SEARCHES.items():
        model.params.update(
            beam_width=beam,
            length_penalty=penalty,
            num_hypotheses=beam,
            maximum_decoding_length=MAX_LENGTH,
        )
        batches = []
        model.labels_inputter.ids_to_tokens = RecordingTable(batches)
        for source in sources:
            model(model.features_inputter.make_features(tf.constant([source])))
        ids = np.zeros((len(sources), beam, MAX_LENGTH), np.int32) + 2
        for row, batch in enumerate(batches):
            ids[row, :, : batch.shape[-1]] = batch[0]
        results[f"ids/{name}"] = ids
    return results


class RecordingTable:
    """Replacement for the token table that records the ids of each lookup."""

    def __init__(self, batches):
        self.batches = batches

    def lookup(self, ids):
        """Records the ids, int64 (1, beam, length), and returns them as strings."""
        self.batches.append(ids.numpy())
        return tf.strings.as_string(ids)


def main():
    """Records every case."""
    for case in CASES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            model = build_model(write_config(folder, case), case)
            write_description(folder, case)
            tf.train.Checkpoint(model=model).write(str(folder / "ckpt-3"))
            files = files_of(folder)
        with tempfile.TemporaryDirectory() as name:
            if case == "relative":
                # Record only the variables: the import ignores the graph of 2 MB.
                tf.saved_model.save(model, name, signatures=model.serve_function())
                variables = files_of(Path(name) / "variables")
                files |= {f"variables/{key}": variables[key] for key in variables}
        arrays = outputs_of(model)
        np.savez_compressed(
            Path(sys.argv[1]) / f"opennmt_{case}.npz", **files, **arrays
        )


if __name__ == "__main__":
    main()
