"""Tests of training an imported model, against Transformers in PyTorch."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.batches import packed_batch
from t2t_repro.interop.import_model import import_model
from t2t_repro.interop.marian.importer import read
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.training import strategy
from t2t_repro.training.loop import TrainingLoop

# Losses of MarianMTModel in Transformers 5.24.0 and PyTorch 2.13.0, float32, without
# dropout. Label smoothing is Marian's (0.1, without the class <pad>), final_logits_bias
# is trained, and Adam has the settings of section 5.3 with the rates below. The ten
# batches are the first 640 pairs of Multi30k's training data, in order.
LOSSES = {
    "a_opus": (
        *(3.058895, 2.968378, 3.093344, 3.175538, 3.001145),
        *(2.917439, 3.080002, 3.088645, 3.109071, 2.994810),
    ),
    "b_relu_labels": (
        *(3.761019, 3.637358, 3.776984, 3.802646, 3.671801),
        *(3.606339, 3.757055, 3.781031, 3.803023, 3.614628),
    ),
    "c_gelu_separate": (
        *(3.451937, 3.335130, 3.472307, 3.530316, 3.415897),
        *(3.379165, 3.433948, 3.481971, 3.537473, 3.376360),
    ),
}
# Learning rate of step n: 0.001 min(n / 4, sqrt(4 / n)).
RATES = [0.00025, 0.0005, 0.00075, 0.001, *(0.002 / n**0.5 for n in range(5, 11))]


@pytest.mark.medium
@pytest.mark.parametrize(
    "case",
    [
        "a_opus",
        # `test_numbers` compares its gradients, and ReLU is common here.
        pytest.param("b_relu_labels", marks=pytest.mark.slow),
        "c_gelu_separate",
    ],
)
def test_ten_steps_have_the_losses_of_transformers_in_pytorch(
    shared_dir, tmp_path, case
):
    folder, corpus = shared_dir / "marian" / case, shared_dir / "corpora/multi30k"
    if not folder.is_dir() or not corpus.is_dir():
        pytest.skip("Marian's reference data or Multi30k are missing")
    source = read(folder / "transformers", positions="transformers")
    import_model(lambda: source, tmp_path / "model")
    directory = ModelDir(tmp_path / "model")
    hparams = directory.hparams().replace(
        dropout=0.0, learning_rate_scale=0.001, warmup_steps=4, clip_norm=0.0
    )
    model = source.build(hparams)
    loop = TrainingLoop(
        model, hparams.resolve_auto(), strategy.choose("auto"), tmp_path
    )
    tokenizer = directory.tokenizer()
    texts = [
        (corpus / f"train.{side}").read_text(encoding="utf-8").split("\n")[:640]
        for side in ("en", "de")
    ]
    losses, rates = [], []
    for number in range(10):
        inputs, targets = (
            side.encode(lines[64 * number : 64 * (number + 1)]).to_tensor().numpy()
            for side, lines in zip((tokenizer, tokenizer.target), texts, strict=True)
        )
        sides = {"inputs": inputs, "targets": targets}
        flat = packed_batch.pack(sides, token_ratio=1.0)  # The ratio is not compared.
        batch = {name: tf.constant(value) for name, value in flat.items()}
        loss, *_, rate = loop.update(batch, tf.constant(number)).numpy()
        losses.append(loss)
        rates.append(rate)
    np.testing.assert_allclose(losses, LOSSES[case], atol=1e-5, rtol=0)
    np.testing.assert_allclose(rates, RATES, rtol=1e-6)
