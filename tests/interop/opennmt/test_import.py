"""Importing what OpenNMT-tf left; what is damaged, mixed or another model is refused.

The files are those that tests/interop/opennmt/record_vectors.py recorded.
"""

import numpy as np
import pytest
import yaml

from t2t_repro.interop.import_model import import_model
from t2t_repro.interop.opennmt.config import read_config
from t2t_repro.interop.opennmt.description import described
from t2t_repro.runs.checkpoints import write_tensors
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.errors import UserError
from tests.interop.opennmt.vectors import read_files, write_files


@pytest.fixture
def folder(tmp_path):
    return write_files("base", tmp_path / "run")


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def config_with(folder, section, **values):
    path = folder / "data.yml"
    config = yaml.safe_load(path.read_text())
    config[section] |= values
    path.write_text(yaml.safe_dump(config))


def test_a_model_directory_is_made_and_told(folder, tmp_path):
    report = import_model(lambda: read_files(folder), tmp_path / "model")
    directory = ModelDir(tmp_path / "model")
    hparams = directory.hparams()
    assert (hparams.num_heads, hparams.num_layers, hparams.decoder_layers) == (2, 2, 1)
    assert (hparams.norm, hparams.norm_epsilon) == ("pre", 1e-3)
    assert (hparams.position, hparams.source_end) == ("sinusoid_from_one", False)
    assert not (hparams.share_embeddings or hparams.tie_target)
    searched = hparams.search, hparams.beam_size, hparams.alpha
    assert searched == ("opennmt", 4, 0.6)
    assert (hparams.decode_length_factor, hparams.decode_extra_length) == (0.0, 12)
    assert report.unused["settings of the search"] == ["coverage_penalty=0.2"]
    assert "not used, settings of the search: coverage_penalty=0.2" in report.text()
    model = directory.model(directory.checkpoint())
    assert report.parameters == model.count_params()


def test_other_ways_of_having_the_model(tmp_path):
    relative = write_files("relative", tmp_path / "run")
    read = read_files(relative)
    assert read.hparams.max_relative_position == 3
    assert read.hparams.position == "none"
    assert read.hparams.share_embeddings
    tokenizer = read.tokenizer
    first = tokenizer.encode(["one"]).to_list()[0][0]
    assert tokenizer.pieces[first] == "<s>"
    assert first not in tokenizer.target.encode(["eins"]).to_list()[0]
    post = read_files(write_files("post", tmp_path / "post"))
    assert (post.hparams.norm, post.hparams.attention_bias) == ("post", False)
    assert post.hparams.tie_target and post.hparams.source_end


def test_a_saved_model_has_the_same_variables(tmp_path):
    folder = write_files("relative", tmp_path / "run")
    exported = write_files("relative", tmp_path / "export", "variables/file")
    variables = exported / "variables"
    variables.mkdir()
    for path in exported.glob("variables.*"):
        path.rename(variables / path.name)
    (exported / "saved_model.pb").write_bytes(b"a graph, which is not read")
    described_by = str(folder / "model_description.py")
    config = (str(folder / "data.yml"),)
    found = read_files(exported, model=described_by, config=config)
    expected = read_files(folder)
    assert found.weights.keys() == expected.weights.keys()
    for name, value in expected.weights.items():
        np.testing.assert_array_equal(found.weights[name], value)
    with pytest.raises(UserError, match=r"has no model_description.py.* give --model"):
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
def test_models_of_the_catalog(tmp_path, name, heads, position):
    (tmp_path / "model_description.py").write_text(
        "from opennmt import models\n"
        f'model = lambda: models.get_model_from_catalog("{name}")\n'
    )
    for description in (described(None, tmp_path), described(name, tmp_path)):
        hparams = description.hparams()
        assert (hparams["num_heads"], hparams["position"]) == (heads, position)


def test_a_description_is_read_in_every_form(tmp_path):
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
    hparams = described(str(path), tmp_path).hparams()
    assert (hparams["num_heads"], hparams["activation"]) == (4, "swish")
    assert (hparams["dropout"], hparams["attention_dropout"]) == (0.0, 0.1)


CALL = "import opennmt as onmt\nmodel = lambda: onmt.models.Transformer({})\n"
OTHERS = {
    "LuongAttention is not supported": 'get_model_from_catalog("LuongAttention")',
    "other models are not supported": "import opennmt\nmodel = opennmt.models.X()",
    "ffn_activation=onmt.layers.gelu": CALL.format("ffn_activation=onmt.layers.gelu"),
    "position_encoder_class=.*PositionEmbedder": CALL.format(
        "position_encoder_class=onmt.layers.PositionEmbedder"
    ),
    "source_inputter=ParallelInputter": CALL.format(
        "source_inputter=onmt.inputters.ParallelInputter([])"
    ),
    "no argument": CALL.format("ffn_gate=True"),
    "cannot be told without running": CALL.format("num_heads=HEADS // 2"),
    "no Python file": "model = (",
}


@pytest.mark.parametrize("words", OTHERS)
def test_other_descriptions_are_refused_by_name(tmp_path, words):
    path = tmp_path / "other.py"
    path.write_text(OTHERS[words])
    with pytest.raises(UserError, match=words) as caught:
        described(str(path), tmp_path).hparams()
    assert "\n" not in str(caught.value)


def cut_off(folder):
    path = folder / "ckpt-3.data-00000-of-00001"
    path.write_bytes(path.read_bytes()[:-300])


def one_piece_less(folder):
    path = folder / "source.vocab"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")


def other_marks(folder):
    edit(folder / "source.vocab", "<blank>\n<s>", "<s>\n<blank>")


def more_layers(folder):
    edit(folder / "model_description.py", "num_layers=(2, 1)", "num_layers=2")


def another_tokenizer(folder):
    params = {"mode": "aggressive", "joiner_annotate": True}
    tokenization = {"type": "OpenNMTTokenizer", "params": params}
    config_with(folder, "data", source_tokenization=tokenization)


DAMAGES = {
    "cannot read": cut_off,
    "they belong to different models": one_piece_less,
    "begins with <blank>, <s> and </s>": other_marks,
    r"says num_layers=\[2, 2\], but in .* it is \[2, 1\]": more_layers,
    "mode: aggressive, joiner_annotate: True": another_tokenizer,
    "several inputs": lambda folder: config_with(
        folder, "data", source_vocabulary=["a", "b"]
    ),
    "has no source_tokenization, .*--source_spm": lambda folder: config_with(
        folder, "data", source_tokenization=None
    ),
    "has no target_vocabulary": lambda folder: config_with(
        folder, "data", target_vocabulary=None
    ),
    "names elsewhere/absent.vocab, which is neither": lambda folder: config_with(
        folder, "data", target_vocabulary="elsewhere/absent.vocab"
    ),
    "beam_width must be a whole number": lambda folder: config_with(
        folder, "params", beam_width=2.5
    ),
    "length_penalty must be a number": lambda folder: config_with(
        folder, "params", length_penalty="long"
    ),
    "SentencePiece model is damaged": lambda folder: (
        folder / "source.spm"
    ).write_bytes(b"junk"),
    "no YAML": lambda folder: (folder / "data.yml").write_text("{: ["),
    "holds no checkpoint": lambda folder: (folder / "ckpt-3.index").unlink(),
    "twice": lambda folder: edit(folder / "target.vocab", "</s>\n", "</s>\ns\ns\n"),
}


@pytest.mark.parametrize("words", DAMAGES)
def test_damaged_and_mixed_files_are_one_line(folder, tmp_path, words):
    DAMAGES[words](folder)
    with pytest.raises(UserError, match=words) as caught:
        import_model(lambda: read_files(folder), tmp_path / "model")
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_checkpoint_of_another_program_is_refused(tmp_path):
    write_tensors(tmp_path / "model.ckpt-1", {"w": np.zeros(2, np.float32)})
    with pytest.raises(UserError, match="no checkpoint of OpenNMT-tf 2"):
        read_files(tmp_path)


def test_what_was_cut_before_names_its_model(folder):
    config_with(folder, "data", source_tokenization=None, target_tokenization=None)
    spm = {"source_spm": str(folder / "source.spm")}
    spm["target_spm"] = str(folder / "target.spm")
    assert read_files(folder, **spm).tokenizer.vocab_size


def test_auto_config_is_what_onmt_main_adds(folder):
    config_with(folder, "params", beam_width=None)
    files = [str(folder / "data.yml")]
    assert read_config(files, folder, False, False).search()["beam_size"] == 1
    (folder / "more.yml").write_text("params: {length_penalty: 0.2}\n")
    files.append(str(folder / "more.yml"))
    config = read_config(files, folder, auto_marks=True, auto=True)
    assert config.marks == (False, True)
    assert config.search()["alpha"] == 0.2
