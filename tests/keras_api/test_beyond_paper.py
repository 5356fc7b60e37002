"""A model with all options that are not in the paper."""

import keras
import numpy as np

import t2t_repro
from tests.keras_api.pairs import PAIRS


def test_a_saved_model_with_all_options_loads_with_the_same_logits(tmp_path):
    hparams = t2t_repro.hparams.load(
        "tiny,share_embeddings=false,tie_target=true,softmax_bias=true,decoder_d_ff=12,"
        "attention_bias=true,activation=swish,norm=pre,norm_epsilon=0.1,"
        "self_attention_radius=2,position=sinusoid_from_one,start_symbol=5,source_end=false"
    )
    model = t2t_repro.Transformer.from_hparams(hparams, 20)
    model.build()
    rng = np.random.default_rng(3)
    model.set_weights([rng.normal(size=w.shape) for w in model.weights])
    paths = {w.path.removeprefix("transformer/"): w for w in model.weights}
    assert "target_embedding/table" not in paths
    assert paths["softmax/bias"].shape == (20,)
    assert "input_embedding/bias" not in paths
    for side, width in (("encoder", hparams.d_ff), ("decoder", 12)):
        layer = f"{side}/layer_0"
        assert paths[f"{layer}/feed_forward/hidden/bias"].shape == (width,)
        for part in ("query", "key", "value", "output"):
            assert f"{layer}/self_attention/{part}/bias" in paths
    assert "decoder/layer_0/cross_attention/output/bias" in paths
    norms = [model.encoder.final_norm, model.decoder.final_norm]
    for layer in (*model.encoder.layers_in_order(), *model.decoder.layers_in_order()):
        norms += [layer.self_attention_residual.layer_norm]
        norms += [layer.feed_forward_residual.layer_norm]
        assert layer.self_attention.radius == 2
        assert layer.feed_forward.activation == "swish"
    assert {norm.epsilon for norm in norms} == {0.1}
    expected = model(PAIRS)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    np.testing.assert_array_equal(again(PAIRS), expected)
