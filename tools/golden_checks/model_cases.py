"""Checks of model cases: activations, losses, attention weights and beam search."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import tensorflow as tf

from golden_checks.rounding import POSITION, model_additions
from golden_checks.sheet import Sheet, largest_magnitude, pad
from golden_checks.t2t_variables import assign_from_t2t, convert_to_t2t
from t2t_repro.decoding.beam_search import beam_search
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.decode_loop import BeamSearchResult, decode_batch
from t2t_repro.hparams import HParams
from t2t_repro.interop.tensor2tensor.hparams import translate_hparams
from t2t_repro.interop.tensor2tensor.variable_names import t2t_name
from t2t_repro.layers.label_smoothing import smoothed_cross_entropy
from t2t_repro.layers.masks import combine_masks, segment_mask
from t2t_repro.models.attention_maps import attention_maps
from t2t_repro.models.cached_decoder import CachedDecoder
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.training.losses import LabelSmoothedCrossEntropy

_BEAM, _ALPHA = 4, 0.6  # Settings of all searches in the reference data.


def check(sheet: Sheet) -> None:
    """Compares all arrays of a model case."""
    case = _Case(sheet)
    case.check_stages()
    case.check_losses()
    if sheet.names("att/"):
        case.check_attention()
    if "decode_extra_length" in sheet:
        case.check_searches()


def build(
    sheet: Sheet, vocab_size: int, target_vocab_size: int
) -> tuple[Transformer, HParams]:
    """Builds a case's model from the `var/` arrays and compares all of them."""
    t2t = json.loads(str(sheet.take("hparams_json")))
    hparams = translate_hparams(t2t, vocab_size, int(sheet.take("target_space_id")))
    model = Transformer.from_hparams(hparams, vocab_size, target_vocab_size)
    model.build()
    variables = named_variables(model)
    assign_from_t2t(model, sheet.group("var/"), hparams.norm)
    shards = int(t2t["symbol_modality_num_shards"])
    values = {name: v.value.numpy() for name, v in variables.items()}
    for name, value in convert_to_t2t(values, hparams.norm, shards).items():
        sheet.compare(f"var/{name}", value)
    return model, hparams


class _Case:
    """A model, its inputs and targets, and the tolerances of its arrays.

    Args:
        sheet: Arrays of the case.
    """

    def __init__(self, sheet: Sheet) -> None:
        case = json.loads(str(sheet.take("case_json")))
        self._sheet = sheet
        vocab_size = case["target_vocab"]
        self._model, self._hparams = build(sheet, case["input_vocab"], vocab_size)
        self._inputs, self._targets = sheet.take("inputs"), sheet.take("targets")
        rows, length = np.maximum(self._inputs.shape, self._targets.shape).tolist()
        self._additions = model_additions(self._hparams, (rows, length), vocab_size)
        self._largest_logit = largest_magnitude(sheet.arrays["logits"])

    def check_stages(self) -> None:
        """Compares the activations of encoder and decoder."""
        sheet, model, additions = self._sheet, self._model, self._additions
        packed = "inputs_segmentation" in sheet
        stages = self._packed_stages() if packed else self._stages()
        encoder_output, decoder_input, decoder_output = stages
        self._logits = model.logits(decoder_output)
        # tensor2tensor's pad remover skips the encoder's feed-forward network at
        # padding. This affects only encoder outputs at padding, and the padding of
        # packed targets.
        source = (self._inputs != 0)[..., None]
        target = (self._targets != 0)[..., None] if packed else None
        table = model.embedding if model.shared else model.input_embedding
        for name, ours, count, mask in (
            ("embedded_inputs", table(self._inputs), 1, None),
            ("encoder_output", encoder_output, additions.encoder, source),
            ("decoder_output", decoder_output, additions.decoder, target),
            ("logits", self._logits, additions.logits, target),
        ):
            sheet.compare(name, ours, count, mask=mask)
        # The error of a sine is that of its angle, which is at most the position.
        last = self._targets.shape[1]
        sheet.compare("decoder_input", decoder_input, POSITION, magnitude=last)

    def _stages(self) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the encoder's output, the decoder's input and its output."""
        model, targets = self._model, self._targets
        encoder_output, mask = model.encode(self._inputs)
        decoder_output = model.decode(targets, encoder_output, mask)
        return encoder_output, model.decoder_input(targets), decoder_output

    def _packed_stages(self) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Computes the stages of rows that hold several pairs.

        `Transformer.decode` restarts the shift of the targets in each segment;
        tensor2tensor does not.
        """
        sheet, model = self._sheet, self._model
        source, target = (
            (sheet.take(f"{side}_position"), sheet.take(f"{side}_segmentation"))
            for side in ("inputs", "targets")
        )
        encoder_output, mask = model.encode(self._inputs, *source)
        shifted = np.pad(self._targets, ((0, 0), (1, 0)))[:, :-1]
        decoder_input = model.step_input(shifted, target[0])
        decoder_output = model.decoder(
            decoder_input,
            encoder_output,
            segment_mask(target[1], target[1]),
            combine_masks(segment_mask(target[1], source[1]), mask),
        )
        return encoder_output, decoder_input, decoder_output

    def check_losses(self) -> None:
        """Compares the losses of the logits of `check_stages`."""
        sheet, targets = self._sheet, self._targets
        weights = (targets != 0).astype(np.float32)
        labels = tf.constant(targets, tf.int32)
        additions, largest = self._additions.losses, self._largest_logit
        for each, mean, smoothing in (
            ("eval_xent", "eval_loss", 0.0),
            ("smoothed_xent", "train_loss", float(sheet.take("label_smoothing"))),
        ):
            losses = smoothed_cross_entropy(self._logits, labels, smoothing)
            sheet.compare(each, losses * weights, additions, magnitude=largest)
            cross_entropy = LabelSmoothedCrossEntropy(smoothing)
            total, count = cross_entropy.sum_and_count(labels, self._logits)
            sheet.compare(mean, total / count, additions + targets.size)
        sheet.compare("token_weights", weights)
        sheet.compare("loss_den", count)

    def check_attention(self) -> None:
        """Compares the attention weights of all layers."""
        sides = tf.constant(self._inputs), tf.constant(self._targets)
        for name, ours in attention_maps(self._model, *sides).items():
            # The attention maps have the variable scope of the attention layer.
            kernel = t2t_name(f"{name}/query/kernel", self._hparams.norm)
            scope = kernel.removesuffix("/q/kernel")
            # Encoder outputs differ at padding, see `check_stages`.
            is_encoder = name.startswith("encoder")
            mask = (self._inputs != 0)[:, None, :, None] if is_encoder else None
            name = f"att/{scope}/dot_product_attention"
            self._sheet.compare(name, ours, self._additions.decoder, mask=mask)

    def check_searches(self) -> None:
        """Compares the ids and scores of greedy and beam search."""
        sheet = self._sheet
        limit = self._inputs.shape[1] + int(sheet.take("decode_extra_length"))

        def compare_scores(name: str, scores: tf.Tensor) -> None:
            # A score is a sum of one log probability per step.
            additions, largest = limit * self._additions.losses, self._largest_logit
            sheet.compare(name, scores, additions, magnitude=largest)

        best, scores = self._search(limit, DecodingConfig(_BEAM, _ALPHA))
        sheet.compare_ids("beam4_top1_ids", best[:, 0])
        compare_scores("beam4_top1_scores", scores[:, 0])
        config = DecodingConfig(_BEAM, _ALPHA, nbest=_BEAM)
        every, scores = self._search(limit, config)
        sheet.compare_ids("beam4_all_ids", every)
        compare_scores("beam4_all_scores", scores)
        if "greedy_ids" in sheet:
            # tensor2tensor's greedy score is the log probability without length
            # penalty. Its ids after the first EOS of a row are meaningless.
            ids, scores = self._search(limit, DecodingConfig(1, 0.0))
            is_end = sheet.take("greedy_ids") == 1
            length, mask = is_end.shape[1], np.cumsum(is_end, axis=1) - is_end == 0
            ours = pad(np.asarray(ids[:, 0, :length]), length)
            sheet.compare("greedy_ids", ours, mask=mask)
            compare_scores("greedy_scores", scores[:, 0])

    def _search(self, limit: int, config: DecodingConfig) -> BeamSearchResult:
        """Runs a search with tensor2tensor's rules and one length limit per batch."""
        decoder = CachedDecoder(self._model, config.beam_size)
        config = replace(config, tensor2tensor_rules=True)
        search = beam_search(config, tf.fill([len(self._inputs)], limit))
        start = decoder.start(tf.constant(self._inputs))
        return decode_batch(search, decoder, start)
