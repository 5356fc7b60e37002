"""keras-hub backbone: the Transformer without the projection to logits."""

from typing import Any

import keras
import keras_hub
from keras import ops

from t2t_repro.models.transformer import Transformer
from t2t_repro.system.errors import UserError

INPUTS = (
    *("encoder_token_ids", "encoder_padding_mask"),
    *("decoder_token_ids", "decoder_padding_mask"),
)
"""Names of the inputs, int32 (batch, length); a mask is 0 at padding."""


@keras.saving.register_keras_serializable("t2t_repro")
class TransformerBackbone(keras_hub.models.Backbone):
    """Functional model over the layers of a `Transformer`.

    Args:
        vocab_size: Number of rows of the embedding table.
        dtype: Dtype policy of all layers.
        name: Name of the model.
        trainable: Whether the weights are trained.
        **arguments: Further arguments of `Transformer`, by name.

    Call arguments:
        inputs: Dictionary of `INPUTS`. `decoder_token_ids` begin with the start token
            0, as in keras-hub: they are the targets, shifted by one position.

    Returns:
        Dictionary of ``encoder_sequence_output``, float (batch, source, d_model), and
        ``decoder_sequence_output``, float (batch, target, d_model).

    Raises:
        UserError: The model has a `self_attention` layer of another class, which
            cached decoding cannot call.

    Attributes:
        transformer: The `Transformer` whose layers the backbone calls.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        dtype: Any = None,
        name: str | None = None,
        trainable: bool = True,
        **arguments: Any,
    ) -> None:
        if arguments.get("self_attention") is not None:
            raise UserError(
                "self_attention: a keras-hub backbone supports only the attention that "
                "max_relative_position and self_attention_radius choose; omit it"
            )
        transformer = Transformer(vocab_size, **arguments, dtype=dtype)
        inputs = {key: keras.Input((None,), dtype="int32", name=key) for key in INPUTS}
        # The ids of padding become PAD, from which the layers derive their masks.
        source, target = (
            ops.multiply(
                *(inputs[f"{side}_{kind}"] for kind in ("token_ids", "padding_mask"))
            )
            for side in ("encoder", "decoder")
        )
        encoder_output, mask = transformer.encode(source)
        x = transformer.target_dropout(transformer.step_input(target, None))
        outputs = {
            "encoder_sequence_output": encoder_output,
            "decoder_sequence_output": transformer.decoder(
                x, encoder_output, cross_attention_mask=mask
            ),
        }
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, name=name)
        self.transformer = transformer
        self.token_embedding = transformer.softmax_table
        self.trainable = trainable

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments."""
        return super().get_config() | self.transformer.arguments
