"""Tokenizer of Marian models."""

import io
import json

import pytest
import sentencepiece
import tensorflow as tf
import yaml

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer
from t2t_repro.tokenizers.word_joins import word_joins

CASES = ("a_opus", "b_relu_labels", "c_gelu_separate", "d_prenorm_untied")
SPECIAL = ["<pad>", "</s>"]


def train_model(lines) -> bytes:
    """Trains a small SentencePiece model with the settings of OPUS-MT."""
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


ENGLISH = train_model(["the dog sees a cat", "a cat sees the dog"])
GERMAN = train_model(["der Hund sieht eine Katze", "eine Katze sieht den Hund"])


def pieces_of(model: bytes) -> list[str]:
    """Returns the special pieces, then the model's pieces in descending order."""
    library = sentencepiece.SentencePieceProcessor(model_proto=model)
    names = [library.id_to_piece(n) for n in range(library.vocab_size())]
    return [*SPECIAL, *sorted((n for n in names if n != "</s>"), reverse=True)]


def two_vocabularies() -> MarianTokenizer:
    """Creates a tokenizer with two vocabularies and a label in the source's."""
    source = [*pieces_of(ENGLISH), ">>deu<<"]
    return MarianTokenizer.from_pieces(ENGLISH, GERMAN, source, pieces_of(GERMAN))


def encode_as_pieces(tokenizer, text: str) -> list[str]:
    """Encodes a text and returns its pieces, with EOS."""
    names = tokenizer.pieces
    (ids,) = tokenizer.encode(tf.constant([text])).to_list()
    return [names[n] for n in ids]


def read_vocabulary(path) -> dict[str, int]:
    """Reads a Marian vocabulary; BaseLoader keeps `no` and `1` as strings."""
    entries = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)
    return {piece: int(number) for piece, number in entries.items()}


@pytest.mark.parametrize("case", CASES)
def test_ids_and_texts_match_marian(shared_dir, case):
    folder = shared_dir / "marian" / case
    expected = json.loads((folder / "marian.json").read_text(encoding="utf-8"))
    files = sorted((folder / "marian").glob("*vocab.yml"))
    tables = [read_vocabulary(file) for file in files]
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
        marian_ids = [[table[order[n]] for n in row] for row in ids]
        assert marian_ids == expected[f"{name}_ids"]

    id_of_marian_id = {
        table[piece]: n for n, piece in enumerate(orders[-1]) if piece in table
    }
    for search in ("greedy", "beam4_normalize_0", "beam6_as_decoder_yml"):
        for line in expected.get(search, ()):
            rows = [[id_of_marian_id[n] for n in row] for row in line["ids"]]
            texts = tokenizer.target.decode(tf.ragged.constant(rows, dtype=tf.int32))
            assert [text.decode() for text in texts.numpy()] == line["text"]


SIDES = ("source", "target")


def test_each_side_uses_its_own_model():
    tokenizer = two_vocabularies()
    for model, side, text in (
        (ENGLISH, tokenizer, "the dog sees"),
        (GERMAN, tokenizer.target, "der Hund sieht"),
    ):
        library = sentencepiece.SentencePieceProcessor(model_proto=model)
        assert encode_as_pieces(side, text) == [
            *library.encode(text, out_type=str),
            "</s>",
        ]
        decoded = side.decode(side.encode(tf.constant([text])))
        assert decoded.numpy().tolist() == [text.encode()]
    assert tokenizer.vocab_size == len(pieces_of(ENGLISH)) + 1
    assert tokenizer.target_vocab_size == len(pieces_of(GERMAN))
    assert tokenizer.target.vocab_size == tokenizer.target_vocab_size


def test_missing_piece_becomes_unknown():
    incomplete = [piece for piece in pieces_of(ENGLISH) if piece != "\u2581dog"]
    tokenizer = MarianTokenizer.from_pieces(ENGLISH, ENGLISH, incomplete)
    unknown = incomplete.index("<unk>")
    assert tokenizer.unknown_id == tokenizer.target.unknown_id == unknown
    assert tokenizer.target_vocab_size is None
    pieces = encode_as_pieces(tokenizer, "the dog")
    assert "\u2581dog" not in pieces and "<unk>" in pieces


def test_label_at_the_beginning_is_a_single_piece():
    tokenizer = two_vocabularies()
    plain = encode_as_pieces(tokenizer, "the dog")
    assert encode_as_pieces(tokenizer, ">>deu<< the dog") == [">>deu<<", *plain]
    assert encode_as_pieces(tokenizer, ">>deu<<the dog") == [">>deu<<", *plain]
    assert encode_as_pieces(tokenizer, ">>fra<< the dog") == ["<unk>", *plain]
    assert ">>deu<<" not in encode_as_pieces(tokenizer, "the >>deu<< dog")
    assert encode_as_pieces(tokenizer, ">>deu<<") == [">>deu<<", "</s>"]


def test_labels_that_are_not_read_as_labels_are_named():
    texts = [">>deu<< the dog", "the >>fra<< dog", ">>fra<< a", ">>fra<< b", " >>deu<<"]
    spaced, unknown = two_vocabularies().notes(texts)
    assert "label >>deu<< follows a space" in spaced
    assert "label >>fra<< is not in the vocabulary" in unknown
    assert unknown.endswith("labels: >>deu<<")


def test_added_pieces_are_cut_out_before_sentencepiece():
    added = {"<n>": False, "<n>>": False, "<sep>": True, "a.b|(": False}
    tokenizer = MarianTokenizer.from_pieces(
        ENGLISH, ENGLISH, [*pieces_of(ENGLISH), *added], added=added
    )
    # Transformers encodes each part between added pieces as a text.
    parts = ["the dog ", "<n>", "<sep>", " sees", "<n>>", "a cat", "<n>", "a.b|("]
    library = sentencepiece.SentencePieceProcessor(model_proto=ENGLISH)
    expected = [
        piece
        for part in parts
        for piece in ([part] if part in added else library.encode(part, out_type=str))
    ]
    assert encode_as_pieces(tokenizer, "".join(parts)) == [*expected, "</s>"]
    assert encode_as_pieces(tokenizer, "") == ["</s>"]
    ids = tokenizer.encode(tf.constant(["".join(parts)]))
    text = "the dog <n> sees <n>> a cat <n> a.b|("
    assert tokenizer.target.decode(ids).numpy().tolist() == [text.encode()]


def test_without_a_sentencepiece_model_texts_consist_of_pieces(capsys):
    # subword-nmt joins a piece that ends in @@ and the next one.
    pieces = [*SPECIAL, "<unk>", "lo@@", "w", "er", ".", ">>deu<<"]
    tokenizer = MarianTokenizer.from_pieces(None, None, pieces)
    texts = tf.constant(["lo@@ w . ", ">>deu<< lo@@  er </s> new", ""])
    ids = tokenizer.encode(texts)
    assert ids.to_list() == [[3, 4, 6, 1], [7, 3, 5, 2, 2, 1], [1]]
    decoded = tokenizer.target.decode(ids).numpy().tolist()
    assert decoded == [b"lo@@ w .", b">>deu<< lo@@ er <unk> <unk>", b""]
    joins_next, joins_last = word_joins(tokenizer, 9)
    assert [n for n in range(9) if joins_next[n]] == [3] and not any(joins_last)
    for text in ("lo@@ w .", "low .", "low ."):
        tokenizer.print_notes([text])
    assert capsys.readouterr().err.count("run its preprocess.sh first") == 1


@pytest.mark.parametrize("text", ["</s>", "<pad>", "the </s> dog", ""])
def test_special_piece_in_a_text_is_plain_text(text):
    pieces = encode_as_pieces(two_vocabularies(), text)
    assert pieces[-1] == "</s>"
    assert "</s>" not in pieces[:-1] and "<pad>" not in pieces


def test_invalid_utf8_is_encoded_and_decoded_as_unknown():
    tokenizer = two_vocabularies()
    ids = tokenizer.encode(tf.constant([b"\xff\xfe", b">>\xff<< the", b"\x00"]))
    texts = [text.decode() for text in tokenizer.decode(ids).numpy()]
    # SentencePiece writes an unknown piece as U+2047 between spaces.
    unknown = "\N{DOUBLE QUESTION MARK}"
    assert texts == [unknown, f"{unknown}  the", unknown]


def test_pieces_of_the_other_model_are_joined():
    both = [*pieces_of(GERMAN), *set(pieces_of(ENGLISH)) - set(pieces_of(GERMAN))]
    tokenizer = MarianTokenizer.from_pieces(ENGLISH, GERMAN, both)
    ids = tokenizer.encode(tf.constant(["the dog sees a cat"]))
    assert tokenizer.target.decode(ids).numpy().tolist() == [b"the dog sees a cat"]


def test_saved_file_contains_both_sides(tmp_path):
    tokenizer = two_vocabularies()
    tokenizer.save(tmp_path)
    reloaded = load_tokenizer(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["vocab.marian"]
    assert reloaded.fingerprint == reloaded.target.fingerprint == tokenizer.fingerprint
    assert reloaded.pieces == tokenizer.pieces
    assert reloaded.target.pieces == tokenizer.target.pieces


def file_with(**fields) -> bytes:
    """Returns a vocabulary file in which `fields` are replaced."""
    contents = json.loads(two_vocabularies()._contents)
    return json.dumps(contents | fields).encode()


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"{}", "not a Marian vocabulary"),
        (b"\xff", "not a Marian vocabulary"),
        (b"[" * 100_000, "not a Marian vocabulary"),
        (file_with(format="other"), "not a Marian vocabulary"),
        (file_with(source_model="AAAA"), "SentencePiece model is damaged"),
        (file_with(source_model="AAA"), "SentencePiece model is damaged"),
        (file_with(source_model="\u00e4AAA"), "SentencePiece model is damaged"),
        (file_with(target_model="?"), "SentencePiece model is damaged"),
        (file_with(source_pieces=3), "source_pieces is not a list"),
        (file_with(source_pieces=["</s>", "<pad>", "<unk>"]), "does not begin with"),
        (file_with(source_pieces=[*SPECIAL, "a"]), "lacks <unk>"),
        (file_with(source_pieces=[*SPECIAL, "<unk>", "\ud800"]), "half of a surrogate"),
        (file_with(source_start="</s>"), "source_start must be one of"),
        (file_with(added={"<n>": True}), "added must contain some of the source_p"),
        (file_with(target_pieces=[*SPECIAL, "<unk>", "a", "a"]), "the piece 'a' twice"),
    ],
)
def test_rejects_a_damaged_file(contents, message, tmp_path):
    path = tmp_path / "vocab.marian"
    path.write_bytes(contents)
    with pytest.raises(UserError, match=message) as raised:
        load_tokenizer(path)
    assert str(path) in str(raised.value)
