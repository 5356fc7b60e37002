"""Tokenizer and preprocessor, called directly and by tf.data."""

import pytest
import tensorflow as tf

from t2t_repro.hub import TransformerSeq2SeqLMPreprocessor, TransformerTokenizer
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from tests import tiny

TEXTS = ["seven three", "  two  one ", "🙂 </s> é", "one two three four"]
TARGETS = ["sieben drei", "zwei", "fünf", "eins zwei drei vier"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Vocabulary files of each kind; the sides of the Marian model differ."""
    folder = tmp_path_factory.mktemp("vocabularies")
    sides = [*zip(*tiny.pairs("train"), strict=True)]
    models = []
    for number, side in enumerate(sides):
        path = folder / f"{number}.model"
        build_vocabulary("sentencepiece", side, 290 + number, path)
        models.append(path)
    words = folder / "pieces.subwords"
    build_vocabulary("wordpiece", sides[0] + sides[1], 100, words)
    pieces = [load_tokenizer(path).pieces for path in models]
    contents = [path.read_bytes() for path in models]
    MarianTokenizer.from_pieces(*contents, pieces[0], pieces[1][::1]).save(folder)
    return [models[0], words, folder / "vocab.marian"]


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_ids_and_texts_equal_those_of_the_graph_tokenizers(kind, files):
    ours, theirs = TransformerTokenizer(files[kind]), load_tokenizer(files[kind])
    expected = theirs.encode(tf.constant(TEXTS))[:, :-1].to_list()
    assert ours(TEXTS) == expected
    assert ours(TEXTS[0]) == expected[0]
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS)
    assert [ids.tolist() for ids in dataset.map(ours).as_numpy_iterator()] == expected
    (batch,) = dataset.batch(4).map(ours)
    assert batch.to_list() == expected
    assert ours.vocabulary_size() == theirs.vocab_size
    targets = theirs.target.encode(tf.constant(TARGETS))
    assert [ours.encode_target(text) for text in TARGETS] == targets.to_list()
    padded = targets.to_tensor()
    texts = [text.decode() for text in theirs.target.decode(padded).numpy()]
    assert ours.detokenize(padded) == texts
    assert ours.detokenize(padded[0]) == texts[0]


def test_pairs_are_cut_padded_and_shifted(files):
    tokenizer = TransformerTokenizer(files[0])
    preprocessor = TransformerSeq2SeqLMPreprocessor(tokenizer, 6, 4)
    source, target = tokenizer(TEXTS[0]), tokenizer.encode_target(TARGETS[0])[:-1]
    assert len(source) > 5
    assert len(target) > 3
    pair = {"encoder_text": TEXTS[0], "decoder_text": TARGETS[0]}
    x, y, weights = preprocessor(pair)
    assert x["encoder_token_ids"].tolist() == [*source[:5], 1]
    assert x["encoder_padding_mask"].tolist() == [1] * 6
    assert y.tolist() == [*target[:3], 1]
    assert x["decoder_token_ids"].tolist() == [0, *target[:3]]
    assert weights.tolist() == [1] * 4
    longer = {"encoder_sequence_length": 99, "decoder_sequence_length": 98}
    x, y, weights = preprocessor(pair, **longer)
    rest = [0] * (97 - len(target))
    assert y.tolist() == [*target, 1, *rest]
    assert weights.tolist() == [1] * (1 + len(target)) + rest
    assert x["encoder_token_ids"].tolist()[: len(source) + 2] == [*source, 1, 0]
    assert sum(x["decoder_padding_mask"].tolist()) == len(target) + 2


def test_tf_data_gets_the_same_arrays_with_static_shapes(files):
    preprocessor = TransformerSeq2SeqLMPreprocessor(
        TransformerTokenizer(files[0]), 9, 7
    )
    pairs = {"encoder_text": TEXTS, "decoder_text": TARGETS}
    dataset = tf.data.Dataset.from_tensor_slices(pairs).map(preprocessor).batch(4)
    assert dataset.element_spec[0]["encoder_token_ids"].shape == [None, 9]
    assert dataset.element_spec[1].shape == [None, 7]
    expected = preprocessor(pairs)
    for (found,) in zip(dataset.as_numpy_iterator(), strict=True):
        for one, other in zip(
            tf.nest.flatten(found), tf.nest.flatten(expected), strict=True
        ):
            assert one.tolist() == other.tolist()


def test_limits_depend_on_the_source(files):
    tokenizer = TransformerTokenizer(files[0])
    preprocessor = TransformerSeq2SeqLMPreprocessor(
        tokenizer, extra_length=3, length_factor=1.5
    )
    lengths = [len(tokenizer(text)) + 1 for text in ("one", "one two")]
    inputs = preprocessor.generate_preprocess(["one", " ", "one two"])
    limits = [int(-(-1.5 * length // 1)) + 3 for length in lengths]
    assert inputs["decoder_limits"].numpy().tolist() == [limits[0], 0, limits[1]]
    assert inputs["encoder_token_ids"].shape == (3, 16)
    # The start token and the limit of a source of 16 tokens.
    assert inputs["decoder_token_ids"].shape == (3, 1 + 24 + 3)
    inputs = preprocessor.generate_preprocess(["one"], sequence_length=5)
    assert inputs["decoder_limits"].numpy().tolist() == [4]
    assert inputs["decoder_token_ids"].shape == (1, 5)


def test_invalid_texts_are_rejected(files):
    preprocessor = TransformerSeq2SeqLMPreprocessor(TransformerTokenizer(files[0]))
    with pytest.raises(UserError, match="training needs a dictionary of texts, enc"):
        preprocessor({"encoder_text": TEXTS})
    texts = {"encoder_text": TEXTS, "decoder_text": TARGETS[:3]}
    with pytest.raises(
        UserError, match=r"^encoder_text has 4 texts, decoder_text 3: g"
    ):
        preprocessor.generate_preprocess(texts)


def test_a_damaged_vocabulary_is_rejected(files, tmp_path):
    with pytest.raises(UserError, match=r"missing\.model'; give the path of a voc"):
        TransformerTokenizer(tmp_path / "missing.model")
    damaged = tmp_path / "damaged.subwords"
    damaged.write_bytes(files[1].read_bytes()[:40])
    with pytest.raises(
        UserError, match=r"damaged\.subwords is not a vocabulary, or da"
    ):
        TransformerTokenizer(damaged)
