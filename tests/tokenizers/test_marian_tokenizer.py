"""Marian's text: pieces by SentencePiece, numbers by a vocabulary of its own."""

import io
import json

import pytest
import sentencepiece
import tensorflow as tf
import yaml

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer

CASES = ("a_opus", "b_relu_labels", "c_gelu_separate", "d_prenorm_untied")
SPECIAL = ["<pad>", "</s>"]


def trained(lines) -> bytes:
    """A SentencePiece model as OPUS-MT trains them, of few lines."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 5),
        model_writer=model,
        model_type="unigram",
        vocab_size=60,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


ENGLISH = trained(["the dog sees a cat", "a cat sees the dog"])
GERMAN = trained(["der Hund sieht eine Katze", "eine Katze sieht den Hund"])


def pieces_of(model: bytes) -> list[str]:
    """Pieces of a model in an order of ours: backwards, special ones first."""
    library = sentencepiece.SentencePieceProcessor(model_proto=model)
    names = [library.id_to_piece(n) for n in range(library.vocab_size())]
    return [*SPECIAL, *sorted((n for n in names if n != "</s>"), reverse=True)]


def separate() -> MarianTokenizer:
    """Two vocabularies; the source's has a label."""
    source = [*pieces_of(ENGLISH), ">>deu<<"]
    return MarianTokenizer.from_pieces(ENGLISH, GERMAN, source, pieces_of(GERMAN))


def spelled(tokenizer, text: str) -> list[str]:
    """The pieces of a text."""
    names = tokenizer.pieces
    (ids,) = tokenizer.encode(tf.constant([text])).to_list()
    return [names[n] for n in ids]


def vocabulary(path) -> dict[str, int]:
    """A vocabulary of Marian; BaseLoader takes `no` and `1` for text."""
    entries = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)
    return {piece: int(number) for piece, number in entries.items()}


@pytest.mark.parametrize("case", CASES)
def test_ids_and_texts_are_those_of_marian(shared_dir, case):
    folder = shared_dir / "marian" / case
    expected = json.loads((folder / "marian.json").read_text(encoding="utf-8"))
    files = sorted((folder / "marian").glob("*vocab.yml"))
    tables = [vocabulary(file) for file in files]
    orders = [
        [*SPECIAL, *(p for p in sorted(table, key=table.get) if p != "</s>")]
        for table in tables
    ]
    models = [(folder / "marian" / f"{side}.spm").read_bytes() for side in SIDES]
    tokenizer = MarianTokenizer.from_pieces(
        *models, orders[0], orders[1] if len(orders) == 2 else None
    )

    for name, side, table, order in (
        ("source", tokenizer, tables[0], orders[0]),
        ("target", tokenizer.target, tables[-1], orders[-1]),
    ):
        ids = side.encode(tf.constant(expected[f"{name}s"])).to_list()
        theirs = [[table[order[n]] for n in row] for row in ids]
        assert theirs == expected[f"{name}_ids"]

    ours = {table[piece]: n for n, piece in enumerate(orders[-1]) if piece in table}
    for search in ("greedy", "beam4_normalize_0", "beam6_as_decoder_yml"):
        for line in expected.get(search, ()):
            rows = [[ours[n] for n in row] for row in line["ids"]]
            texts = tokenizer.target.decode(tf.ragged.constant(rows, dtype=tf.int32))
            assert [text.decode() for text in texts.numpy()] == line["text"]


SIDES = ("source", "target")


def test_each_side_cuts_by_its_own_model():
    tokenizer = separate()
    for model, side, text in (
        (ENGLISH, tokenizer, "the dog sees"),
        (GERMAN, tokenizer.target, "der Hund sieht"),
    ):
        library = sentencepiece.SentencePieceProcessor(model_proto=model)
        assert spelled(side, text) == [*library.encode(text, out_type=str), "</s>"]
        decoded = side.decode(side.encode(tf.constant([text])))
        assert decoded.numpy().tolist() == [text.encode()]
    assert tokenizer.vocab_size == len(pieces_of(ENGLISH)) + 1
    assert tokenizer.target_vocab_size == len(pieces_of(GERMAN))
    assert tokenizer.target.vocab_size == tokenizer.target_vocab_size


def test_a_piece_that_the_vocabulary_lacks_is_unknown():
    lacking = [piece for piece in pieces_of(ENGLISH) if piece != "\u2581dog"]
    tokenizer = MarianTokenizer.from_pieces(ENGLISH, ENGLISH, lacking)
    unknown = lacking.index("<unk>")
    assert tokenizer.unknown_id == tokenizer.target.unknown_id == unknown
    assert tokenizer.target_vocab_size is None
    found = spelled(tokenizer, "the dog")
    assert "\u2581dog" not in found and "<unk>" in found


def test_a_label_at_the_beginning_is_one_piece_and_an_unknown_one_is_unknown():
    tokenizer = separate()
    plain = spelled(tokenizer, "the dog")
    assert spelled(tokenizer, ">>deu<< the dog") == [">>deu<<", *plain]
    assert spelled(tokenizer, ">>deu<<the dog") == [">>deu<<", *plain]
    assert spelled(tokenizer, ">>fra<< the dog") == ["<unk>", *plain]
    assert ">>deu<<" not in spelled(tokenizer, "the >>deu<< dog")
    assert spelled(tokenizer, ">>deu<<") == [">>deu<<", "</s>"]


@pytest.mark.parametrize("text", ["</s>", "<pad>", "the </s> dog", ""])
def test_what_looks_like_a_special_symbol_is_text(text):
    pieces = spelled(separate(), text)
    assert pieces[-1] == "</s>"
    assert "</s>" not in pieces[:-1] and "<pad>" not in pieces


def test_bytes_that_are_no_text_are_encoded_and_decoded():
    tokenizer = separate()
    ids = tokenizer.encode(tf.constant([b"\xff\xfe", b">>\xff<< the", b"\x00"]))
    for text in tokenizer.decode(ids).numpy():
        text.decode()


def test_pieces_of_the_other_model_are_joined_too():
    both = [*pieces_of(GERMAN), *set(pieces_of(ENGLISH)) - set(pieces_of(GERMAN))]
    tokenizer = MarianTokenizer.from_pieces(ENGLISH, GERMAN, both)
    ids = tokenizer.encode(tf.constant(["the dog sees a cat"]))
    assert tokenizer.target.decode(ids).numpy().tolist() == [b"the dog sees a cat"]


def test_its_file_is_found_again_and_is_all_there_is(tmp_path):
    tokenizer = separate()
    tokenizer.save(tmp_path)
    again = load_tokenizer(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["vocab.marian"]
    assert again.fingerprint == again.target.fingerprint == tokenizer.fingerprint
    assert again.pieces == tokenizer.pieces
    assert again.target.pieces == tokenizer.target.pieces


def changed(**fields) -> bytes:
    """The file with some fields changed."""
    contents = json.loads(separate()._contents)
    return json.dumps(contents | fields).encode()


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"{}", "not a Marian vocabulary"),
        (b"\xff", "not a Marian vocabulary"),
        (b"[" * 100_000, "not a Marian vocabulary"),
        (changed(format="other"), "not a Marian vocabulary"),
        (changed(source_model="AAAA"), "SentencePiece model is damaged"),
        (changed(target_model="?"), "SentencePiece model is damaged"),
        (changed(source_pieces=3), "source_pieces is no list"),
        (changed(source_pieces=["</s>", "<pad>", "<unk>"]), "does not begin with"),
        (changed(source_pieces=[*SPECIAL, "a"]), "has no <unk>"),
        (changed(target_pieces=[*SPECIAL, "<unk>", "a", "a"]), "the piece 'a' twice"),
    ],
)
def test_a_damaged_file_is_refused_by_name(contents, message, tmp_path):
    path = tmp_path / "vocab.marian"
    path.write_bytes(contents)
    with pytest.raises(UserError, match=message) as raised:
        load_tokenizer(path)
    assert str(path) in str(raised.value)
