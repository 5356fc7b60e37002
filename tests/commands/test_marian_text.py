"""Training and translating with the vocabulary of a Marian model."""

import io

import pytest
import sentencepiece

from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer
from t2t_repro.translation.loading import load_models
from tests import run_command, tiny

pytestmark = pytest.mark.medium

SEARCH = """\
tokenizer: marian
share_embeddings: false
search: marian
decode_length_factor: 3.0
allow_unknown: false
alpha: 1.0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Trains a model with a Marian vocabulary; returns the folder of all files."""
    path = tmp_path_factory.mktemp("marian")
    tiny.write_corpus(path / "data")
    # After four steps, the model is still warming up and not scored.
    text = tiny.HPARAMS.replace("warmup_steps: 2", "warmup_steps: 5") + SEARCH
    (path / "marian.yaml").write_text(text, encoding="utf-8")
    models, pieces = [], []
    for side, size in enumerate((40, 35)):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(pair[side] for pair in tiny.pairs("train")),
            model_writer=model,
            vocab_size=size,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        models.append(model.getvalue())
        library = sentencepiece.SentencePieceProcessor(model_proto=models[-1])
        names = [library.id_to_piece(n) for n in range(library.vocab_size())]
        pieces.append(["<pad>", "</s>", *(name for name in names if name != "</s>")])
    MarianTokenizer.from_pieces(*models, *pieces).save(path)
    result = run_command.run("train", *flags(path))
    assert result.status == 0, result.err
    return path


def flags(folder, *others):
    """Returns the flags of a training run."""
    paths = {
        "hparams": "marian.yaml",
        "data_dir": "data",
        "model_dir": "model",
        "vocab_file": "vocab.marian",
    }
    pairs = ((f"--{name}", str(folder / file)) for name, file in paths.items())
    return [*(word for pair in pairs for word in pair), *others]


def test_the_model_has_two_vocabularies_and_marians_search(folder):
    loaded = load_models(folder / "model")
    (model,) = loaded.models
    assert model.input_embedding.vocab_size == loaded.tokenizer.vocab_size
    assert model.vocab_size == loaded.tokenizer.target_vocab_size
    search = loaded.search()
    unknown = loaded.tokenizer.target.unknown_id
    assert (search.algorithm, search.never) == ("marian", (unknown,))
    assert search.longest(4) == 14  # 3 * 4 + 2
    assert load_models(folder / "model").search(algorithm="t2t").algorithm == "t2t"


@pytest.mark.parametrize(
    "others",
    [
        ("--sampling", "--nbest", "2"),
        ("--xla", "--batch_size", "1", "--alignment"),
    ],
)
def test_all_ways_of_translating_use_plain_text(folder, others):
    arguments = ("--model_dir", str(folder / "model"), *others)
    result = run_command.run("translate", *arguments, stdin=b"one two\n\nthree\n")
    assert result.status == 0, result.err
    assert "\u2581" not in result.out and "<unk>" not in result.out
    numbers = [n for n, _ in enumerate(result.out.splitlines())]
    assert len(numbers) == (5 if "--nbest" in others else 3)


def test_prefixes_and_given_translations_use_the_target_vocabulary(folder):
    path = folder / "prefixes.de"
    path.write_text("fünf\n", encoding="utf-8")
    arguments = ("--model_dir", str(folder / "model"), "--prefix_file", str(path))
    result = run_command.run("translate", *arguments, stdin=b"one two\n")
    assert result.out.startswith("fünf"), result.err
    (folder / "in.en").write_text("one two\n", encoding="utf-8")
    pair = ("--source_file", str(folder / "in.en"), "--target_file", str(path))
    arguments = ("--model_dir", str(folder / "model"), "--per_token")
    result = run_command.run("score", *arguments, *pair)
    _, symbols, *tokens = result.out.rstrip("\n").split("\t")
    side = ModelDir(folder / "model").tokenizer().target
    (ids,) = side.encode(["fünf"]).to_list()
    assert int(symbols) == len(ids)
    assert "fünf" in "".join(token.rsplit(" ", 1)[0] for token in tokens)


def test_rejects_tensor2tensor_rules_for_marians_search(folder):
    arguments = ("--model_dir", str(folder / "model"), "--tensor2tensor_rules")
    result = run_command.run("translate", *arguments, stdin=b"one\n")
    assert result.status == 2
    assert "the model uses marian's search" in result.err


def test_datagen_cannot_build_a_marian_vocabulary(folder):
    arguments = ("--hparams", str(folder / "marian.yaml"), "--problem", "files")
    arguments += ("--data_dir", str(folder / "data"))
    result = run_command.run("datagen", *arguments)
    assert result.status == 2
    assert "vocabulary of tokenizer=marian cannot be built from text" in result.err
