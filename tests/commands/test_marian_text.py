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
    """Corpus, set and vocabulary of two sides, and a model trained with them."""
    path = tmp_path_factory.mktemp("marian")
    tiny.write_corpus(path / "data")
    (path / "marian.yaml").write_text(tiny.HPARAMS + SEARCH, encoding="utf-8")
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
    done = run_command.run("train", *flags(path))
    assert done.status == 0, done.err
    return path


def flags(folder, *others):
    """The flags of a training."""
    given = {
        "hparams": "marian.yaml",
        "data_dir": "data",
        "model_dir": "model",
        "vocab_file": "vocab.marian",
    }
    pairs = ((f"--{name}", str(folder / file)) for name, file in given.items())
    return [*(word for pair in pairs for word in pair), *others]


def test_the_model_is_of_both_sides_and_searches_as_its_set_says(folder):
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
        (),
        ("--nbest", "2"),
        ("--alignment",),
        ("--sampling",),
        ("--xla", "--batch_size", "1"),
    ],
)
def test_every_way_of_translating_takes_and_gives_plain_text(folder, others):
    arguments = ("--model_dir", str(folder / "model"), *others)
    done = run_command.run("translate", *arguments, stdin=b"one two\n\nthree\n")
    assert done.status == 0, done.err
    assert "\u2581" not in done.out and "<unk>" not in done.out
    numbers = [n for n, _ in enumerate(done.out.splitlines())]
    assert len(numbers) == (5 if "--nbest" in others else 3)


def test_prefixes_and_given_translations_are_cut_as_the_target_is(folder):
    path = folder / "prefixes.de"
    path.write_text("fünf\n", encoding="utf-8")
    arguments = ("--model_dir", str(folder / "model"), "--prefix_file", str(path))
    done = run_command.run("translate", *arguments, stdin=b"one two\n")
    assert done.out.startswith("fünf"), done.err
    (folder / "in.en").write_text("one two\n", encoding="utf-8")
    pair = ("--source_file", str(folder / "in.en"), "--target_file", str(path))
    arguments = ("--model_dir", str(folder / "model"), "--per_token")
    done = run_command.run("score", *arguments, *pair)
    _, symbols, *tokens = done.out.rstrip("\n").split("\t")
    side = ModelDir(folder / "model").tokenizer().target
    (ids,) = side.encode(["fünf"]).to_list()
    assert int(symbols) == len(ids)
    assert "fünf" in "".join(token.rsplit(" ", 1)[0] for token in tokens)


def test_rules_of_another_search_are_refused(folder):
    arguments = ("--model_dir", str(folder / "model"), "--tensor2tensor_rules")
    done = run_command.run("translate", *arguments, stdin=b"one\n")
    assert done.status == 2
    assert "the model searches as marian does" in done.err


def test_a_vocabulary_of_this_kind_is_never_built(folder):
    arguments = ("--hparams", str(folder / "marian.yaml"), "--problem", "files")
    arguments += ("--data_dir", str(folder / "data"))
    done = run_command.run("datagen", *arguments)
    assert done.status == 2
    assert "vocabulary of tokenizer=marian cannot be built from text" in done.err
