"""Writes the models of `tests/data/keras_files` and their outputs.

    git checkout 1fc4263 && python freeze_keras_files.py FOLDER

That revision was the last one with a subclass per option and a `variant` in stacks and
models. `test_former_files.py` loads the files.
"""

import sys
import zipfile
from pathlib import Path

import keras
import numpy as np

import t2t_repro
from t2t_repro import layers

SIZES = {"num_heads": 2, "d_k": 2, "d_v": 3, "d_ff": 5}
D_MODEL, VOCAB_SIZE = 4, 9
IDS = np.array([[5, 6, 7, 1], [8, 1, 0, 0]], "int32")
TARGETS = np.array([[4, 2, 1], [3, 1, 0]], "int32")
TINY = (
    "tiny,num_layers=1,d_model=4,d_ff=5,num_heads=2,target_space_embedding=false,"
    "vocab_divisor=1"
)
MODELS = {
    "paper": "",
    "marian": ",share_embeddings=false,tie_target=true,softmax_bias=true,"
    "decoder_d_ff=6,attention_bias=true,activation=swish,norm_epsilon=1e-2",
    "opennmt": ",share_embeddings=false,softmax_bias=true,start_symbol=5,norm=pre,"
    "source_end=false,position=sinusoid_from_one,attention_bias=true,activation=gelu,"
    "max_relative_position=2",
    "relative": ",max_relative_position=1,self_attention_radius=2,position=none",
    "neighbourhood": ",self_attention_radius=1,attention_bias=true,norm_epsilon=1e-3,"
    "norm=pre,softmax_bias=true,start_symbol=2",
}


def every_class() -> keras.Model:
    """Creates a model with every removed class and the renamed one."""
    from t2t_repro.layers import beyond_paper

    ids = keras.Input((None,), dtype="int32")
    sizes = VOCAB_SIZE, D_MODEL
    tables = [
        layers.BiasedEmbedding(*sizes),
        beyond_paper.StartEmbedding(*sizes, start_symbol=3),
        beyond_paper.BiasedStartEmbedding(*sizes, start_symbol=4),
        layers.TokenEmbedding(*sizes),
    ]
    x = keras.layers.add([table(ids) for table in tables])
    x = layers.EpsilonResidual(norm="pre", epsilon=0.1)(
        x, sublayer=keras.activations.tanh
    )
    attention = 2, 2, 3
    for layer in (
        layers.BiasedAttention(*attention),
        layers.MultiHeadAttention(*attention),
        layers.BiasedRelativeAttention(*attention, max_relative_position=1),
        layers.BiasedNeighbourhoodAttention(*attention, radius=1),
        layers.NeighbourhoodAttention(*attention, radius=1),
        layers.BiasedAttention(*attention),
    ):
        x = keras.layers.add([x, layer(x, x)])
    x = layers.ActivatedFeedForward(5, activation="gelu_sigmoid")(x)
    x = layers.FeedForward(5)(x)
    x = layers.EpsilonNormalization(0.1)(x)
    return keras.Model(ids, [table(x, reverse=True) for table in tables])


def every_stack() -> keras.Model:
    """Creates a model of stacks and their layers, each with a different `variant`."""

    def part(class_name: str, **config: object) -> dict[str, object]:
        return {"class_name": f"t2t_repro>{class_name}", "config": config}

    ids = keras.Input((None,), dtype="int32")
    x = layers.TokenEmbedding(VOCAB_SIZE, D_MODEL, mask_zero=True)(ids)
    x = layers.EncoderLayer(
        **SIZES, variant=part("RelativeAttention", max_relative_position=1)
    )(x)
    biased = {
        name: part("BiasedAttention") for name in ("self_attention", "cross_attention")
    }
    memory = layers.Encoder(
        1, "pre", **SIZES, variant=part("NeighbourhoodAttention", radius=1)
    )(x)
    swish = {"feed_forward": part("ActivatedFeedForward", activation="swish")}
    x = layers.DecoderLayer(**SIZES, variant=biased | swish)(x, memory)
    epsilon = {
        f"{name}_residual": part("EpsilonResidual", epsilon=0.1)
        for name in ("self_attention", "cross_attention", "feed_forward")
    }
    epsilon["final_norm"] = part("EpsilonNormalization", epsilon=0.1)
    x = layers.Decoder(1, "pre", **SIZES, variant=epsilon)(x, memory)
    return keras.Model(ids, layers.Decoder(1, **SIZES)(x, memory))


def write(model: keras.Model, path: Path) -> None:
    """Assigns random weights and saves a compressed model."""
    rng = np.random.default_rng(7)
    model.set_weights([rng.normal(size=w.shape) for w in model.weights])
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in parts.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def main(folder: Path) -> None:
    """Writes every model, and `outputs.npz` with outputs by model name and number."""
    outputs = {}
    for name, make in (("classes", every_class), ("stacks", every_stack)):
        model = make()
        write(model, folder / f"{name}.keras")
        for number, output in enumerate(keras.tree.flatten(model(IDS))):
            outputs[f"{name}-{number}"] = np.asarray(output)
    for name, changes in MODELS.items():
        model = t2t_repro.Transformer.from_hparams(TINY + changes, VOCAB_SIZE)
        model.build()
        write(model, folder / f"{name}.keras")
        logits = model({"inputs": IDS, "targets": TARGETS})
        outputs[f"{name}-0"] = np.asarray(logits)
    np.savez_compressed(folder / "outputs.npz", **outputs)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
