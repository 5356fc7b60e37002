"""Which values tensor2tensor's hyper-parameters may have that are not translated.

Found by reading what its Transformer reads (1.15.7: models/transformer.py,
layers/transformer_layers.py, layers/modalities.py, utils/t2t_model.py,
utils/optimize.py, utils/data_reader.py).
"""

from collections.abc import Mapping
from typing import Any

# What decides the model's function without being translated: the values that are
# the model of this package; the first is what a missing one stands for.
MODEL: Mapping[str, tuple[Any, ...]] = {
    "self_attention_type": ("dot_product", "dot_product_relative"),
    "ffn_layer": ("dense_relu_dense", "conv_hidden_relu"),
    "norm_type": ("layer",),
    "norm_epsilon": (1e-6,),
    "shared_embedding": (False,),
    "proximity_bias": (False,),
    "attention_variables_3d": (False,),
    "causal_decoder_self_attention": (True,),
    "unidirectional_encoder": (False,),
    "factored_logits": (False,),
    "prepend_mode": ("none",),
    "hard_attention_k": (0,),
    "gumbel_noise_weight": (0.0,),
    "num_area_layers": (0,),
    "activation_dtype": ("float32",),
    "weight_dtype": ("float32",),
    "symbol_modality_skip_top": (False,),
    "input_modalities": ("default",),
    "target_modality": ("default",),
    "bottom": ({},),
    "loss": ({},),
    "name": ({},),
    "top": ({},),
    "weights_fn": ({},),
}
# The same for what decides the training alone.
TRAINING: Mapping[str, tuple[Any, ...]] = {
    "optimizer": ("adam", "Adam"),
    "optimizer_multistep_accumulate_steps": (0, 1, None),
    "weight_decay": (0.0,),
    "weight_noise": (0.0,),
    "grad_noise_scale": (0.0,),
    "symbol_dropout": (0.0,),
    "scheduled_sampling_prob": (0.0,),
    "attention_dropout_broadcast_dims": ("",),
    "relu_dropout_broadcast_dims": ("",),
    "layer_prepostprocess_dropout_broadcast_dims": ("",),
    "min_length": (0,),
    "max_input_seq_length": (0, -1),
    "max_target_seq_length": (0, -1),
    "use_fixed_batch_size": (False,),
    "pack_dataset": (False,),
    "split_to_length": (0,),
    "split_targets_chunk_length": (0,),
}

# Read by other models, by the programs around the training, or by choices that are
# refused above. "dropout" too: the Transformer has three others and not that one.
_HARMLESS = {
    *("add_relative_to_values", "batch_shuffle_size", "compress_steps"),
    *("conv_first_kernel", "daisy_chain_variables", "data_dir", "dropout"),
    *("eval_drop_long_sequences", "eval_freq_in_steps", "eval_run_autoregressive"),
    *("eval_steps", "eval_timeout_mins", "force_full_predict"),
    *("gpu_automatic_mixed_precision", "heads_share_relative_embedding", "initializer"),
    *("initializer_gain", "kernel_height", "kernel_width", "length_bucket_step"),
    *("memory_height", "min_length_bucket", "mlperf_mode", "model_dir"),
    *("nbr_decoder_problems", "no_data_parallelism", "num_sampled_classes"),
    *("optimizer_zero_grads", "overload_eval_metric_name", "pad_batch"),
    *("position_features", "pretrained_model_dir", "problem", "schedule"),
    *("std_server_protocol", "summarize_grads", "summarize_vars"),
    *("symbol_modality_num_shards", "tpu_enable_host_call", "train_steps"),
    *("use_custom_ops", "use_pad_remover", "warm_start_from", "warm_start_from_second"),
}
_HARMLESS_PREFIXES = (
    *("area_", "learning_rate_", "max_area_", "mixed_precision_", "moe_"),
    *("multiproblem_", "optimizer_adafactor_", "optimizer_momentum_"),
    *("parameter_attention_", "sampling_", "scheduled_sampling_", "split_targets_"),
    *("video_num_",),
)
# What an unknown hyper-parameter may be: whatever it stands for is turned off.
_OFF: tuple[Any, ...] = (None, False, 0, "", "none", {}, [])


def is_harmless(key: str, value: object) -> bool:
    """Whether a hyper-parameter that is not in a table here can be ignored.

    An unknown one can where it is turned off.
    """
    known = key in _HARMLESS or key.startswith(_HARMLESS_PREFIXES)
    return known or value in _OFF
