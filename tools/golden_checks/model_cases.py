"""Checks of model cases: activations, losses, attention weights and beam search."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import tensorflow as tf

from golden_checks.sheet import Array, Sheet, padded
from golden_checks.t2t_variables import assign_from_t2t, to_t2t
from t2t_repro.decoding.beam_search import beam_search
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.decode_loop import BeamSearchResult, decode_batch
from t2t_repro.hparams import HParams
from t2t_repro.interop.tensor2tensor.hparams import to_hparams
from t2t_repro.interop.tensor2tensor.variable_names import t2t_name
from t2t_repro.layers.label_smoothing import smoothed_cross_entropy
from t2t_repro.layers.masks import both, segment_mask
from t2t_repro.models.attention_maps import attention_maps
from t2t_repro.models.cached_decoder import CachedDecoder
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.training.losses import LabelSmoothedCrossEntropy

ACTIVATIONS = 1e-4
LOSSES = 1e-5
SCORES = 1e-3
_BEAM, _ALPHA = 4, 0.6  # Settings of all searches in the reference data.


def check(sheet: Sheet) -> None:
    """Compares all arrays of a model case."""
    case = json.loads(str(sheet.take("case_json")))
    model, hparams = build(sheet, case["input_vocab"], case["target_vocab"])
    inputs, targets = sheet.take("inputs"), sheet.take("targets")
    logits = _check_stages(sheet, model, inputs, targets)
    _check_losses(sheet, logits, targets)
    if sheet.names("att/"):
        _check_attention(sheet, model, hparams, inputs, targets)
    if "decode_extra_length" in sheet:
        _check_searches(sheet, model, inputs)


def build(
    sheet: Sheet, vocab_size: int, target_vocab_size: int
) -> tuple[Transformer, HParams]:
    """Builds a case's model from the `var/` arrays and compares all of them."""
    t2t = json.loads(str(sheet.take("hparams_json")))
    hparams = to_hparams(t2t, vocab_size, int(sheet.take("target_space_id")))
    model = Transformer.from_hparams(hparams, vocab_size, target_vocab_size)
    model.build()
    variables = named_variables(model)
    assign_from_t2t(model, sheet.group("var/"), hparams.norm)
    shards = int(t2t["symbol_modality_num_shards"])
    values = {name: v.value.numpy() for name, v in variables.items()}
    for name, value in to_t2t(values, hparams.norm, shards).items():
        sheet.compare(f"var/{name}", value, 0.0)
    return model, hparams


def _check_stages(
    sheet: Sheet, model: Transformer, inputs: Array, targets: Array
) -> tf.Tensor:
    """Compares the activations of encoder and decoder; returns the logits."""
    packed = "inputs_segmentation" in sheet
    stages = _packed_stages(sheet, model) if packed else _stages(model, inputs, targets)
    encoder_output, decoder_input, decoder_output = stages
    logits = model.logits(decoder_output)
    # tensor2tensor's pad remover skips the encoder's feed-forward network at padding.
    # This affects only encoder outputs at padding, and the padding of packed targets.
    source = (inputs != 0)[..., None]
    target = (targets != 0)[..., None] if packed else None
    table = model.embedding if model.shared else model.input_embedding
    for name, ours, mask in (
        ("embedded_inputs", table(inputs), None),
        ("encoder_output", encoder_output, source),
        ("decoder_input", decoder_input, None),
        ("decoder_output", decoder_output, target),
        ("logits", logits, target),
    ):
        sheet.compare(name, ours, ACTIVATIONS, mask)
    return logits


def _stages(
    model: Transformer, inputs: Array, targets: Array
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the encoder's output, the decoder's input and its output."""
    encoder_output, mask = model.encode(inputs)
    decoder_output = model.decode(targets, encoder_output, mask)
    return encoder_output, model.decoder_input(targets), decoder_output


def _packed_stages(
    sheet: Sheet, model: Transformer
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Computes the stages of rows that hold several pairs.

    `Transformer.decode` restarts the shift of the targets in each segment;
    tensor2tensor does not.
    """
    source, target = (
        (sheet.take(f"{side}_position"), sheet.take(f"{side}_segmentation"))
        for side in ("inputs", "targets")
    )
    encoder_output, mask = model.encode(sheet.take("inputs"), *source)
    shifted = np.pad(sheet.take("targets"), ((0, 0), (1, 0)))[:, :-1]
    decoder_input = model.step_input(shifted, target[0])
    decoder_output = model.decoder(
        decoder_input,
        encoder_output,
        segment_mask(target[1], target[1]),
        both(segment_mask(target[1], source[1]), mask),
    )
    return encoder_output, decoder_input, decoder_output


def _check_losses(sheet: Sheet, logits: tf.Tensor, targets: Array) -> None:
    weights = (targets != 0).astype(np.float32)
    labels = tf.constant(targets, tf.int32)
    for each, mean, smoothing in (
        ("eval_xent", "eval_loss", 0.0),
        ("smoothed_xent", "train_loss", float(sheet.take("label_smoothing"))),
    ):
        losses = smoothed_cross_entropy(logits, labels, smoothing)
        sheet.compare(each, losses * weights, LOSSES)
        cross_entropy = LabelSmoothedCrossEntropy(smoothing)
        total, count = cross_entropy.sum_and_count(labels, logits)
        sheet.compare(mean, total / count, LOSSES)
    sheet.compare("token_weights", weights, 0.0)
    sheet.compare("loss_den", count, 0.0)


def _check_attention(
    sheet: Sheet, model: Transformer, hparams: HParams, inputs: Array, targets: Array
) -> None:
    maps = attention_maps(model, tf.constant(inputs), tf.constant(targets))
    for name, ours in maps.items():
        # The attention maps have the variable scope of the attention layer.
        scope = t2t_name(f"{name}/query/kernel", hparams.norm).removesuffix("/q/kernel")
        # Encoder outputs differ at padding, see `_check_stages`.
        mask = (inputs != 0)[:, None, :, None] if name.startswith("encoder") else None
        sheet.compare(f"att/{scope}/dot_product_attention", ours, ACTIVATIONS, mask)


def _check_searches(sheet: Sheet, model: Transformer, inputs: Array) -> None:
    limit = inputs.shape[1] + int(sheet.take("decode_extra_length"))
    best, scores = _search(model, inputs, limit, DecodingConfig(_BEAM, _ALPHA))
    sheet.compare_ids("beam4_top1_ids", best[:, 0])
    sheet.compare("beam4_top1_scores", scores[:, 0], SCORES)
    config = DecodingConfig(_BEAM, _ALPHA, nbest=_BEAM)
    every, scores = _search(model, inputs, limit, config)
    sheet.compare_ids("beam4_all_ids", every)
    sheet.compare("beam4_all_scores", scores, SCORES)
    if "greedy_ids" in sheet:
        # tensor2tensor's greedy score is the log probability without length penalty.
        # Its ids after the first EOS of a row are meaningless.
        ids, scores = _search(model, inputs, limit, DecodingConfig(1, 0.0))
        is_end = sheet.take("greedy_ids") == 1
        length, mask = is_end.shape[1], np.cumsum(is_end, axis=1) - is_end == 0
        ours = padded(np.asarray(ids[:, 0, :length]), length)
        sheet.compare("greedy_ids", ours, 0.0, mask)
        sheet.compare("greedy_scores", scores[:, 0], SCORES)


def _search(
    model: Transformer, inputs: Array, limit: int, config: DecodingConfig
) -> BeamSearchResult:
    """Runs beam search with tensor2tensor's rules and one length limit per batch."""
    decoder = CachedDecoder(model, config.beam_size)
    config = replace(config, tensor2tensor_rules=True)
    search = beam_search(config, tf.fill([len(inputs)], limit))
    return decode_batch(search, decoder, decoder.start(tf.constant(inputs)))
