"""Tests of importing OpenNMT-tf models and of rejecting damaged or mixed files.

record_vectors.py recorded the files.
"""

import numpy as np
import pytest
import yaml

from t2t_repro.interop.import_model import import_model
from t2t_repro.interop.opennmt.config import read_config
from t2t_repro.interop.opennmt.description import read_description
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.runs.tensor_file import write_tensors
from t2t_repro.system.errors import UserError
from tests.interop.opennmt.vectors import read_files, write_files


@pytest.fixture
def folder(tmp_path):
    return write_files("base", tmp_path / "run")


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def edit_config(folder, section, **values):
    path = folder / "data.yml"
    config = yaml.safe_load(path.read_text())
    config[section] |= values
    path.write_text(yaml.safe_dump(config))


def test_import_writes_a_model_directory_and_a_report(folder, tmp_path):
    report = import_model(lambda: read_files(folder), tmp_path / "model")
    directory = ModelDir(tmp_path / "model")
    hparams = directory.hparams()
    assert (hparams.num_heads, hparams.num_layers, hparams.decoder_layers) == (2, 2, 1)
    assert (hparams.norm, hparams.norm_epsilon) == ("pre", 1e-3)
    assert (hparams.position, hparams.source_end) == ("sinusoid_from_one", False)
    assert not (hparams.share_embeddings or hparams.tie_target)
    search = hparams.search, hparams.beam_size, hparams.alpha
    assert search == ("opennmt", 4, 0.6)
    assert (hparams.decode_length_factor, hparams.decode_extra_length) == (0.0, 12)
    assert report.unused["settings of the search"] == ["coverage_penalty=0.2"]
    assert "not used, settings of the search: coverage_penalty=0.2" in report.text()
    model = directory.model(directory.checkpoint())
    assert report.parameters == model.count_params()


def test_imports_relative_and_post_norm_models(tmp_path):
    relative = read_files(write_files("relative", tmp_path / "run"))
    assert relative.hparams.max_relative_position == 3
    assert relative.hparams.position == "none"
    assert relative.hparams.share_embeddings
    tokenizer = relative.tokenizer
    first = tokenizer.encode(["one"]).to_list()[0][0]
    assert tokenizer.pieces[first] == "<s>"
    assert first not in tokenizer.target.encode(["eins"]).to_list()[0]
    post = read_files(write_files("post", tmp_path / "post"))
    assert (post.hparams.norm, post.hparams.attention_bias) == ("post", False)
    assert post.hparams.tie_target and post.hparams.source_end


def test_imports_the_same_weights_from_a_saved_model(tmp_path):
    folder = write_files("relative", tmp_path / "run")
    exported = write_files("relative", tmp_path / "export", "variables/file")
    variables = exported / "variables"
    variables.mkdir()
    for path in exported.glob("variables.*"):
        path.rename(variables / path.name)
    (exported / "saved_model.pb").write_bytes(b"a graph, which is not read")
    description = str(folder / "model_description.py")
    config = (str(folder / "data.yml"),)
    source = read_files(exported, model=description, config=config)
    expected = read_files(folder)
    assert source.weights.keys() == expected.weights.keys()
    for name, value in expected.weights.items():
        np.testing.assert_array_equal(source.weights[name], value)
    with pytest.raises(UserError, match=r"lacks model_description.py.* give --model"):
        read_files(exported, config=config)


@pytest.mark.parametrize(
    ("name", "heads", "position"),
    [
        ("TransformerBase", 8, "sinusoid_from_one"),
        ("TransformerBig", 16, "sinusoid_from_one"),
        ("TransformerRelative", 8, "none"),
        ("TransformerBigRelative", 16, "none"),
        ("ScalingNmtEnDe", 16, "sinusoid_from_one"),
    ],
)
def test_reads_models_of_the_catalog_by_name_and_file(tmp_path, name, heads, position):
    (tmp_path / "model_description.py").write_text(
        "from opennmt import models\n"
        f'model = lambda: models.get_model_from_catalog("{name}")\n'
    )
    for description in (
        read_description(None, tmp_path),
        read_description(name, tmp_path),
    ):
        hparams = description.hparams()
        assert (hparams["num_heads"], hparams["position"]) == (heads, position)


def test_reads_a_subclass_of_transformer(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import tensorflow as tf\nimport opennmt as onmt\n"
        "class Mine(onmt.models.Transformer):\n"
        "    def __init__(self):\n"
        "        super().__init__(\n"
        "            onmt.inputters.WordEmbedder(512),\n"
        "            num_heads=4, ffn_activation=tf.nn.silu, dropout=0,\n"
        "            position_encoder_class=onmt.layers.SinusoidalPositionEncoder)\n"
        "model = Mine\n"
    )
    hparams = read_description(str(path), tmp_path).hparams()
    assert (hparams["num_heads"], hparams["activation"]) == (4, "swish")
    assert (hparams["dropout"], hparams["attention_dropout"]) == (0.0, 0.1)


CALL = "import opennmt as onmt\nmodel = lambda: onmt.models.Transformer({})\n"
UNSUPPORTED = {
    "LuongAttention is not supported": 'get_model_from_catalog("LuongAttention")',
    "other models are not supported": "import opennmt\nmodel = opennmt.models.X()",
    "ffn_activation=onmt.layers.gelu": CALL.format("ffn_activation=onmt.layers.gelu"),
    "position_encoder_class=.*PositionEmbedder": CALL.format(
        "position_encoder_class=onmt.layers.PositionEmbedder"
    ),
    "source_inputter=ParallelInputter": CALL.format(
        "source_inputter=onmt.inputters.ParallelInputter([])"
    ),
    "unknown argument ffn_gate in": CALL.format("ffn_gate=True"),
    "HEADS // 2 is not a constant": CALL.format("num_heads=HEADS // 2"),
    "not a valid Python file": "model = (",
}


@pytest.mark.parametrize("message", UNSUPPORTED)
def test_rejects_an_unsupported_description_by_name(tmp_path, message):
    path = tmp_path / "other.py"
    path.write_text(UNSUPPORTED[message])
    with pytest.raises(UserError, match=message) as error:
        read_description(str(path), tmp_path).hparams()
    assert "\n" not in str(error.value)


def truncate_data(folder):
    path = folder / "ckpt-3.data-00000-of-00001"
    path.write_bytes(path.read_bytes()[:-300])


def remove_last_piece(folder):
    path = folder / "source.vocab"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")


def swap_special_pieces(folder):
    edit(folder / "source.vocab", "<blank>\n<s>", "<s>\n<blank>")


def add_decoder_layer(folder):
    edit(folder / "model_description.py", "num_layers=(2, 1)", "num_layers=2")


def change_tokenizer(folder):
    params = {"mode": "aggressive", "joiner_annotate": True}
    tokenization = {"type": "OpenNMTTokenizer", "params": params}
    edit_config(folder, "data", source_tokenization=tokenization)


DAMAGES = {
    "cannot read": truncate_data,
    "the files belong to different models": remove_last_piece,
    "first three lines must be <blank>, <s> and </s>": swap_special_pieces,
    r"num_layers is \[2, 2\], but in .* it is \[2, 1\]": add_decoder_layer,
    "mode: aggressive, joiner_annotate: True": change_tokenizer,
    "several inputs": lambda folder: edit_config(
        folder, "data", source_vocabulary=["a", "b"]
    ),
    "lacks source_tokenization; .*--source_spm": lambda folder: edit_config(
        folder, "data", source_tokenization=None
    ),
    "lacks target_vocabulary": lambda folder: edit_config(
        folder, "data", target_vocabulary=None
    ),
    "names elsewhere/absent.vocab, which does not exist": lambda folder: edit_config(
        folder, "data", target_vocabulary="elsewhere/absent.vocab"
    ),
    "beam_width must be a whole number": lambda folder: edit_config(
        folder, "params", beam_width=2.5
    ),
    "length_penalty must be a number": lambda folder: edit_config(
        folder, "params", length_penalty="long"
    ),
    "SentencePiece model is damaged": lambda folder: (
        folder / "source.spm"
    ).write_bytes(b"junk"),
    "not valid YAML": lambda folder: (folder / "data.yml").write_text("{: ["),
    "contains no checkpoint": lambda folder: (folder / "ckpt-3.index").unlink(),
    "twice": lambda folder: edit(folder / "target.vocab", "</s>\n", "</s>\ns\ns\n"),
}


@pytest.mark.parametrize("message", DAMAGES)
def test_rejects_damaged_and_mixed_files_in_one_line(folder, tmp_path, message):
    DAMAGES[message](folder)
    with pytest.raises(UserError, match=message) as error:
        import_model(lambda: read_files(folder), tmp_path / "model")
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_rejects_a_checkpoint_of_a_different_program(tmp_path):
    write_tensors(tmp_path / "model.ckpt-1", {"w": np.zeros(2, np.float32)})
    with pytest.raises(UserError, match="is not a checkpoint of OpenNMT-tf 2"):
        read_files(tmp_path)


def test_flags_give_the_sentencepiece_models_of_pretokenized_text(folder):
    edit_config(folder, "data", source_tokenization=None, target_tokenization=None)
    spm = {"source_spm": str(folder / "source.spm")}
    spm["target_spm"] = str(folder / "target.spm")
    assert read_files(folder, **spm).tokenizer.vocab_size


def test_auto_config_adds_the_defaults_of_onmt_main(folder):
    edit_config(folder, "params", beam_width=None)
    files = [str(folder / "data.yml")]
    assert read_config(files, folder, False, False).search()["beam_size"] == 1
    (folder / "more.yml").write_text("params: {length_penalty: 0.2}\n")
    files.append(str(folder / "more.yml"))
    config = read_config(files, folder, auto_marks=True, auto=True)
    assert config.marks == (False, True)
    assert config.search()["alpha"] == 0.2


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[1]", "ffn_activation=.* is not supported"),
        ("{1: 2}", "ffn_activation=.* is not supported"),
        ("-" * 900 + "1", "is too deeply nested; simplify it"),
        ("a" + "()" * 900, "is too deeply nested; simplify it"),
        ("-" * 100_000 + "1", "is too deeply nested; simplify it"),
    ],
    ids=["list", "dictionary", "signs", "calls", "more signs"],
)
def test_rejects_expressions_of_other_types_and_depths(tmp_path, value, message):
    path = tmp_path / "mine.py"
    path.write_text(f"model = opennmt.models.Transformer(ffn_activation={value})\n")
    with pytest.raises(UserError, match=rf"mine\.py.* {message}"):
        read_description(str(path), tmp_path).hparams()


def test_rejects_a_name_of_another_type_in_the_catalog(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("model = opennmt.models.get_model_from_catalog([])\n")
    with pytest.raises(UserError, match=r"the model \[\] is not supported"):
        read_description(str(path), tmp_path)


def test_references_do_not_multiply_the_size_of_a_configuration(tmp_path):
    path = tmp_path / "data.yml"
    path.write_text("data: &d {a: 1}\nparams: *d\n")
    assert read_config([str(path)], tmp_path, False, False).params == {"a": 1}
    path.write_text("data: &d {a: 1}\nparams: {b: [" + "*d, " * 21 + "]}\n")
    with pytest.raises(UserError, match=r"data\.yml has 21 references .*at most 20"):
        read_config([str(path)], tmp_path, False, False)
