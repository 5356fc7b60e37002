"""Tests of the figures and of the numbers in them."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from figures import heads, masks, norm_order, norms, order, positions, scaling, style

from t2t_repro.data.prepared_data import prepare
from t2t_repro.hparams import HParams
from t2t_repro.layers.position import sinusoid_rates
from t2t_repro.problems import create
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.training.schedules import Schedule
from tests import run_command, tiny

TOOL = "tools/plot_lessons.py"


def test_a_shift_rotates_each_sine_and_cosine():
    """With two channels, the rotation angle is the shift in radians."""
    np.testing.assert_allclose(
        positions.shift_map(3, 2),
        [[np.cos(3), np.sin(3)], [-np.sin(3), np.cos(3)]],
        atol=1e-12,
    )
    table = positions.encoding(300, 64)
    for shift in (1, 7, 64):
        assert 0 < positions.map_error(table, shift) < 1e-4
        assert positions.map_error(table, shift + 1) < positions.map_error(
            np.roll(table, 1, axis=1), shift
        )


def test_a_linear_map_fits_sinusoids_but_not_random_vectors():
    table = positions.encoding(512, 32)
    random = np.random.default_rng(1).normal(size=table.shape)
    assert positions.fitted_error(table, 4) < 0.01
    assert positions.fitted_error(random, 4) > 0.9


def test_dot_products_are_sums_of_cosines():
    table = positions.encoding(300, 64)
    expected = np.cos(np.arange(-20, 21)[:, None] * sinusoid_rates(64)).mean(axis=1)
    for position in (50, 200):
        products = positions.dot_products(table, position, 20)
        np.testing.assert_allclose(products, expected, atol=1e-3)


@pytest.mark.medium
def test_order_has_no_effect_without_a_position_signal():
    effects = {kind: order.order_effect(order.KINDS[kind], 3) for kind in order.KINDS}
    assert effects["none"] < 1e-5
    assert min(effects[kind] for kind in ("sinusoid", "learned", "relative")) > 0.01


def test_unscaled_scores_grow_with_the_square_root_of_d_k():
    for d_k in (16, 256):
        unscaled = scaling.scores("unscaled", d_k)
        assert unscaled.std() == pytest.approx(np.sqrt(d_k), rel=0.05)
        assert scaling.scores("scaled", d_k).std() == pytest.approx(1, rel=0.05)
        assert scaling.scores("additive", d_k).std() < 1.5


def test_gradient_size_is_the_norm_of_the_softmax_jacobian():
    logits = scaling.scores("unscaled", 8)[:5, :7]
    x = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.softmax(x)
    jacobians = tape.batch_jacobian(y, x).numpy()
    expected = np.sqrt((jacobians**2).sum(axis=(1, 2))).mean()
    assert scaling.gradient_size(logits) == pytest.approx(expected)
    # The gradient vanishes if one key has all the weight.
    assert scaling.gradient_size(np.array([[1e4, 0, 0]])) == 0


def test_masks_have_the_visible_pairs():
    by_name = {name.replace("\n", " "): mask for name, mask in masks.visible().items()}
    padding = by_name["encoder and decoder to encoder: padding is hidden"]
    assert padding.sum() == 8 * 6
    causal = by_name["decoder: later positions are hidden"]
    assert causal.sum() == 36
    near = by_name["restricted self-attention, decoder, radius 2"]
    assert near[5].tolist() == [False, False, False, True, True, True, False, False]
    packed = by_name["packed rows, decoder: other examples are hidden"]
    # Segments of 2, 3 and 2 positions and one of padding: 3 + 6 + 3 + 1.
    assert packed.sum() == 13


@pytest.mark.medium
def test_only_batch_norm_depends_on_other_sentences():
    plain = norms.padded_batch(0)
    padded, others = norms.padded_batch(0.5), norms.padded_batch(0, others_seed=2)
    assert padded.shape[1] == 2 * plain.shape[1]
    changes = {
        kind: (norms.change(kind, plain, padded), norms.change(kind, plain, others))
        for kind in ("layer", "batch", "batch, masked")
    }
    assert max(changes["layer"]) < 1e-6
    assert changes["batch"][0] > 0.3
    assert changes["batch, masked"][0] < 1e-5
    assert changes["batch, masked"][1] > 0.02


def test_a_silenced_head_adds_nothing():
    model = tiny.random_model(num_layers=1)
    attention = model.encoder.layer_0.self_attention
    kernel = attention.output_projection.kernel.numpy()
    outputs = np.random.default_rng(1).normal(size=(1, 2, 3, attention.d_v))
    silent = outputs.copy()
    silent[:, 1] = 0
    expected = attention.merge_heads(tf.constant(silent, tf.float32)).numpy()
    with heads.silenced(attention, 1):
        merged = attention.merge_heads(tf.constant(outputs, tf.float32))
        np.testing.assert_allclose(merged, expected, atol=1e-5)
    np.testing.assert_array_equal(attention.output_projection.kernel, kernel)


def test_each_head_is_silenced_once():
    model = tiny.random_model(num_layers=1)
    every = [each for layers in heads.attentions(model).values() for each in layers]
    kernels = [each.output_projection.kernel for each in every]
    before = [kernel.numpy() for kernel in kernels]
    silent = []

    def bleu():
        now = [
            (at, head)
            for at, kernel in enumerate(kernels)
            for head in range(2)
            if not kernel.numpy()[8 * head : 8 * (head + 1)].any()
        ]
        silent.append(now)
        return 50.0 - len(silent)

    whole, changes = heads.bleu_without_each(model, bleu, lambda line: None)
    assert silent == [[], *([(at, head)] for at in range(3) for head in range(2))]
    assert whole == 49
    values = [value for each in changes.values() for value in each.flat]
    assert values == [-1, -2, -3, -4, -5, -6]
    for kernel, old in zip(kernels, before, strict=True):
        np.testing.assert_array_equal(kernel, old)


def test_without_warmup_the_rate_starts_at_its_peak():
    for norm in ("post", "pre"):
        rates = {}
        for how in ("warm-up", "none"):
            hparams = norm_order.runs(1)[f"{norm}-norm, {how}"]
            assert hparams.norm == norm
            schedule = Schedule(
                hparams.learning_rate_schedule,
                hparams.d_model,
                hparams.warmup_steps,
                hparams.learning_rate_scale,
            )
            rates[how] = [float(schedule(np.array(step))) for step in (0, 199, 999)]
        peak = (64 * 200) ** -0.5
        assert rates["warm-up"] == pytest.approx(
            [peak / 200, peak, (64 * 1000) ** -0.5], rel=1e-5
        )
        assert rates["none"] == pytest.approx(
            [peak, peak, (64 * 1000) ** -0.5], rel=1e-3
        )


@pytest.mark.medium
def test_short_training_runs_reduce_the_loss(tmp_path):
    tiny.write_corpus(tmp_path / "data")
    hparams = HParams(
        vocab_size=tiny.VOCAB_SIZE,
        d_model=16,
        d_ff=32,
        num_heads=2,
        num_layers=1,
        warmup_steps=5,
        learning_rate_scale=0.1,
        tokens_per_batch=256,
        max_length=32,
        max_tokens_per_device=0,
    )
    problem = create("files", str(tmp_path / "data"), "en", "de")
    data = prepare(problem, hparams, tmp_path / "prepared", lambda line: None)
    losses = norm_order.losses(hparams, data, 20)
    assert losses.shape == (20,)
    # The untrained model's distribution is nearly uniform over 300 pieces.
    assert losses[0] == pytest.approx(np.log(300), rel=0.2)
    assert norm_order.smoothed(losses)[-1] < losses[0] - 0.3


def luminance(colour):
    """Returns the relative luminance of #rrggbb (WCAG 2.2)."""
    srgb = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize("background", ["#ffffff", "#14171c"])
def test_colors_contrast_with_light_and_dark_pages(background):
    for colour, least in [(style.INK, 4), *((each, 3) for each in style.COLOURS)]:
        bright, dark = sorted([luminance(colour), luminance(background)], reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= least, colour


def draw(folder, *arguments):
    return run_command.run(TOOL, "--output_dir", str(folder), *arguments)


@pytest.mark.medium
def test_draws_the_quick_figures_by_default(tmp_path):
    pytest.importorskip("matplotlib")
    process = draw(tmp_path / "out", "--json")
    assert process.status == 0, process.err
    result = json.loads(process.out)
    assert set(result) == {
        *("positions", "order", "scaling", "schedule", "masks", "norms")
    }
    for each in result.values():
        png, svg = (Path(path) for path in each["files"])
        assert png.read_bytes().startswith(b"\x89PNG")
        assert ET.parse(svg).getroot().tag.endswith("svg")
        assert max(png.stat().st_size, svg.stat().st_size) < 400_000
    assert result["positions"]["numbers"]["largest_map_error"] < 1e-4
    peaks = result["schedule"]["numbers"]["largest_rate"]
    assert peaks["d_model 512, warm-up 4000"] == pytest.approx(
        (512 * 4000) ** -0.5, rel=1e-3
    )


@pytest.mark.medium
def test_silences_the_heads_of_a_trained_model(trained, tmp_path):
    pytest.importorskip("matplotlib")
    process = draw(
        tmp_path / "out",
        *("--only", "heads", "--model_dir", str(trained.model_dir), "--lines", "3"),
        *("--source_file", str(trained.data_dir / "test.en")),
        *("--reference_file", str(trained.data_dir / "test.de"), "--json"),
    )
    assert process.status == 0, process.err
    numbers = json.loads(process.out)["heads"]["numbers"]
    assert numbers["lines"] == 3
    assert [np.shape(each) for each in numbers["change"].values()] == [(1, 2)] * 3
    directory = ModelDir(trained.model_dir)
    assert directory.hparams().num_heads == 2
    assert (tmp_path / "out" / "heads.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "head"], "--only: must be one of positions, order"),
        (["--only", "heads"], "--only heads requires --model_dir"),
        (["--only", "heads", "--model_dir", "m"], "heads requires --source_file"),
        (["--lines", "0"], "--lines: must be a whole number of at least 1"),
    ],
)
def test_reports_a_mistake_in_one_line(tmp_path, arguments, words):
    process = draw(tmp_path / "out", *arguments)
    assert run_command.is_one_clear_line(process)
    assert words in process.err
    assert not (tmp_path / "out").exists()
