"""keras-hub task: training on texts, and translation with `generate`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import keras
import keras_hub
from keras import ops

from t2t_repro.hub.backbone import TransformerBackbone
from t2t_repro.hub.cached_decoder import CachedDecoder
from t2t_repro.hub.conversion import SUPPORTED, sampler_for
from t2t_repro.hub.preprocessor import LIMITS, TransformerSeq2SeqLMPreprocessor
from t2t_repro.hub.sampler import BeamSearchSampler
from t2t_repro.hub.tokenizer import TransformerTokenizer
from t2t_repro.layers.functional import Tensor
from t2t_repro.models.transformer import Transformer
from t2t_repro.system.quiet_import import use_tensorflow_backend
from t2t_repro.tokenizers.plain_tokenizer import PAD_ID
from t2t_repro.training.losses import LabelSmoothedCrossEntropy
from t2t_repro.training.schedules import Schedule

if TYPE_CHECKING:
    from t2t_repro.decoding.config import DecodingConfig
    from t2t_repro.translation.loading import Loaded

_WARMUP_STEPS = 4000

# Few translations are longer than their source by more than this.
_FIRST_EXTRA_LENGTH = 16


@keras.saving.register_keras_serializable("t2t_repro")
class TransformerSeq2SeqLM(keras_hub.models.Seq2SeqLM):
    """Transformer that is trained on texts, and translates with `generate`.

    Args:
        backbone: The model without the projection to logits.
        preprocessor: Converts texts; None: all inputs are ids.
        sampler: Default sampler of `compile`; None: `BeamSearchSampler`.
        **kwargs: Arguments of the base class.
    """

    backbone_cls = TransformerBackbone
    preprocessor_cls = TransformerSeq2SeqLMPreprocessor
    generate_function: Callable[..., dict[str, Tensor]] | None

    def __init__(
        self,
        backbone: TransformerBackbone,
        preprocessor: TransformerSeq2SeqLMPreprocessor | None = None,
        sampler: keras_hub.samplers.Sampler | None = None,
        **kwargs: Any,
    ) -> None:
        self.backbone, self.preprocessor = backbone, preprocessor
        self.default_sampler = sampler or BeamSearchSampler()
        hidden = backbone(backbone.input)["decoder_sequence_output"]
        super().__init__(
            inputs=backbone.input,
            outputs=backbone.token_embedding(hidden, reverse=True),
            **kwargs,
        )

    @classmethod
    def from_model(
        cls,
        model: Transformer,
        tokenizer: TransformerTokenizer | str | os.PathLike[str],
        sampler: keras_hub.samplers.Sampler | None = None,
        **lengths: Any,
    ) -> Self:
        """Creates a task with a copy of a model's weights.

        Args:
            model: Built model.
            tokenizer: Tokenizer, or the path of its vocabulary file.
            sampler: Default sampler; see the class.
            **lengths: Arguments of `TransformerSeq2SeqLMPreprocessor`.

        Raises:
            UserError: The vocabulary is missing or damaged, or the model has an
                attention layer of another class.
        """
        if not isinstance(tokenizer, TransformerTokenizer):
            tokenizer = TransformerTokenizer(tokenizer)
        backbone = TransformerBackbone(**model.arguments, dtype=model.dtype_policy)
        backbone.transformer.set_weights(model.get_weights())
        preprocessor = TransformerSeq2SeqLMPreprocessor(tokenizer, **lengths)
        return cls(backbone, preprocessor, sampler)

    @classmethod
    def from_model_dir(
        cls, model_dir: str | os.PathLike[str], checkpoint: str = "best"
    ) -> Self:
        """Creates a task from a model directory, with the settings of its search.

        Args:
            model_dir: Model directory of `python -m t2t_repro.train` or an import.
            checkpoint: As in `t2t_repro.load`.

        Raises:
            UserError: The model is missing, damaged or not supported, or Keras' backend
                is not TensorFlow, which reads the checkpoint.
        """
        use_tensorflow_backend()
        # A local import, because translation imports the models for TensorFlow.
        from t2t_repro.translation.loading import load_models

        loaded = load_models(model_dir, checkpoint)
        SUPPORTED.check(loaded.model_dirs[0].hparams())
        return cls.from_loaded(loaded, loaded.search())

    @classmethod
    def from_loaded(
        cls, loaded: Loaded, search: DecodingConfig, max_input_length: int = 512
    ) -> Self:
        """Creates a task from a loaded model with supported hyper-parameters.

        Args:
            loaded: The model.
            search: Settings of the search.
            max_input_length: Number of subwords to which sources are cut, EOS included.
        """
        return cls.from_model(
            loaded.models[0],
            loaded.model_dirs[0].path / loaded.tokenizer.file_name,
            sampler_for(search),
            encoder_sequence_length=max_input_length,
            extra_length=search.extra_length,
            length_factor=search.length_factor,
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments."""
        sampler = keras.saving.serialize_keras_object(self.default_sampler)
        return super().get_config() | {"sampler": sampler}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates a task from the result of `get_config`."""
        sampler = config.get("sampler")
        if isinstance(sampler, dict):
            sampler = keras.saving.deserialize_keras_object(sampler)
        return super().from_config(config | {"sampler": sampler})

    def compile(
        self,
        optimizer: Any = "auto",
        loss: Any = "auto",
        *,
        weighted_metrics: Any = "auto",
        sampler: Any = "auto",
        **kwargs: Any,
    ) -> None:
        """Configures training and `generate`.

        Args:
            optimizer: Optimizer; "auto": the paper's Adam and learning rate (section
                5.3).
            loss: Loss; "auto": the paper's label-smoothed cross entropy (section 5.4).
            weighted_metrics: Metrics; "auto": the accuracy of the tokens.
            sampler: Sampler of `generate`, or its name in keras-hub; "auto": that of
                the constructor.
            **kwargs: Arguments of ``keras.Model.compile``. With TensorFlow, set
                ``jit_compile=True`` to compile `generate` with XLA on a CPU as well.
        """
        model = self.backbone.transformer
        if optimizer == "auto":
            rate = Schedule("paper", d_model=model.d_model, warmup_steps=_WARMUP_STEPS)
            optimizer = keras.optimizers.Adam(rate, 0.9, 0.98, 1e-9)
        if loss == "auto":
            no_padding = model.arguments["softmax_bias"]
            loss = LabelSmoothedCrossEntropy(without_padding=no_padding)
        super().compile(
            optimizer=optimizer,
            loss=loss,
            weighted_metrics=weighted_metrics,
            sampler=self.default_sampler if sampler == "auto" else sampler,
            **kwargs,
        )

    def generate(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Translates texts; arguments as in ``keras_hub.models.CausalLM.generate``.

        Args:
            inputs: A text, a list of texts, or a dictionary of these as
                ``encoder_text`` and prefixes of their translations as ``decoder_text``.
            *args: Further arguments.
            **kwargs: Further arguments.

        Returns:
            A translation, or a list of translations; "" for a blank text.
        """
        if isinstance(inputs, list) and not inputs:
            return []
        # keras-hub would replace the caller's values.
        inputs = dict(inputs) if isinstance(inputs, dict) else inputs
        return super().generate(inputs, *args, **kwargs)

    def make_generate_function(self) -> Callable[..., dict[str, Tensor]]:
        """Returns the function that translates a batch of ids; see `generate_step`.

        A step takes time for every position of the cache, and most translations need
        few of them. The beam search therefore tries a width near that of the sources
        first, and the whole width only if a sentence is not done, so that its limit and
        result are the same.
        """
        if self.generate_function is not None:
            return self.generate_function
        search = super().make_generate_function()
        if not isinstance(self.sampler, BeamSearchSampler):
            return search
        tokens, mask = "decoder_token_ids", "decoder_padding_mask"

        def search_narrow_first(
            inputs: dict[str, Tensor], stop_token_ids: Sequence[int] | None = None
        ) -> dict[str, Tensor]:
            width = inputs["encoder_token_ids"].shape[1] + _FIRST_EXTRA_LENGTH
            if LIMITS in inputs and not ops.any(inputs[mask][:, width:]):
                narrow = {key: inputs[key][:, :width] for key in (tokens, mask)}
                outputs = search(inputs | narrow, stop_token_ids)
                if ops.all((outputs[tokens][:, 1] != PAD_ID) | (inputs[LIMITS] == 0)):
                    return outputs
            return search(inputs, stop_token_ids)

        self.generate_function = search_narrow_first
        return search_narrow_first

    def generate_step(
        self, inputs: dict[str, Tensor], stop_token_ids: Sequence[int] | None = None
    ) -> dict[str, Tensor]:
        """Translates a batch of ids.

        Args:
            inputs: Inputs of the backbone, (batch, length). `decoder_token_ids` are the
                start token and the prefix, with padding for the translation. If
                ``decoder_limits``, int32 (batch,), are present, they are the maximum
                number of tokens of each translation; `BeamSearchSampler` returns no
                tokens for a sentence that is not done at the length.
            stop_token_ids: Ids that end a translation.

        Returns:
            ``decoder_token_ids``, int32 (batch, length), and ``decoder_padding_mask``,
            bool (batch, length), true up to the end of the translation.
        """
        prompt = ops.cast(inputs["decoder_token_ids"], "int32")
        mask = ops.cast(inputs["decoder_padding_mask"], "bool")
        batch, width = prompt.shape
        limits = inputs.get(LIMITS, ops.full((batch,), width - 1, "int32"))
        source = ops.cast(inputs["encoder_token_ids"], "int32")
        source = source * ops.cast(inputs["encoder_padding_mask"], "int32")
        decoder = CachedDecoder(self.backbone.transformer, source, width)
        beams, ours = 1, {}
        if isinstance(self.sampler, BeamSearchSampler):
            beams = self.sampler.num_beams
            ours = {"limits": limits, "select": decoder.select}
        ids = self.sampler(
            decoder.next,
            prompt,
            cache=decoder.initial_cache(beams),
            index=1,
            mask=mask,
            stop_token_ids=stop_token_ids,
            hidden_states=None,
            model=self,
            **ours,
        )
        # Other samplers continue up to the width.
        visible = ops.arange(width) <= limits[:, None]
        if stop_token_ids is not None:
            stops = ops.convert_to_tensor(list(stop_token_ids), "int32")
            is_end = ops.any(ids[:, :, None] == stops, axis=2) & ~mask
            is_end = ops.cast(is_end, "int32")
            visible &= ops.cumsum(is_end, axis=1) - is_end == 0
        return {"decoder_token_ids": ids, "decoder_padding_mask": visible}
