"""Tests of the generated corpus: splits, values and German text."""

import random
from collections import Counter

import pytest
from num2words import num2words

from t2t_repro.problems.problem import SPLITS
from t2t_repro.problems.translate_ende_numbers import TranslateEndeNumbers, corpus
from t2t_repro.problems.translate_ende_numbers.partition import partition
from t2t_repro.problems.translate_ende_numbers.phrase import Value
from t2t_repro.problems.translate_ende_numbers.sentences import KINDS, SentenceMaker
from t2t_repro.system.errors import UserError

MONTHS = str.split(
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
)


@pytest.fixture(scope="module")
def problem() -> TranslateEndeNumbers:
    return TranslateEndeNumbers()


def values(problem: TranslateEndeNumbers, split: str) -> set[Value]:
    return {value for item in problem.items(split) for value in item.values}


def large_numbers(problem: TranslateEndeNumbers, split: str) -> set[int]:
    """Returns the numbers of 100 or more that occur in a split."""
    numbers = {
        part for value in values(problem, split) for part in value if part != value[0]
    }
    return {n for n in numbers if isinstance(n, int) and n >= 100}


def test_splits_have_their_sizes_and_unique_sentences(
    problem: TranslateEndeNumbers,
) -> None:
    sizes = {split: len(problem.items(split)) for split in SPLITS}
    assert sizes == {"train": 50_000, "val": 500, "test": 2_000}
    words = {item for item in problem.items("train") if item.kind == "word"}
    sentences = [
        item for s in SPLITS for item in problem.items(s) if item.kind != "word"
    ]
    sources = [item.source for item in (*words, *sentences)]
    assert len(set(sources)) == len(sources)


def test_test_sources_have_seven_words_or_more_on_average(
    problem: TranslateEndeNumbers,
) -> None:
    lengths = [len(en.split()) for en, _ in problem.pairs("test")]
    assert sum(lengths) / len(lengths) >= 7


def test_every_split_has_the_six_kinds_in_equal_parts(
    problem: TranslateEndeNumbers,
) -> None:
    for split in SPLITS:
        kinds = Counter(item.kind for item in problem.items(split))
        assert (kinds.pop("word", 0) > 1_000) == (split == "train")
        assert set(kinds) == set(KINDS)
        assert set(kinds) == {"number", "ordinal", "date", "time", "price", "clause"}
        assert max(kinds.values()) - min(kinds.values()) <= 1


def test_splits_share_no_sentence_in_any_spelling(
    problem: TranslateEndeNumbers,
) -> None:
    letters = {
        split: {
            "".join(filter(str.isalpha, source.lower()))
            for source, _ in problem.pairs(split)
        }
        for split in SPLITS
    }
    assert not letters["train"] & letters["test"]
    assert not letters["train"] & letters["val"]
    assert not letters["val"] & letters["test"]


def test_training_has_every_number_below_100_day_and_month(
    problem: TranslateEndeNumbers,
) -> None:
    pairs = dict(problem.pairs("train"))
    for n in range(100):
        assert pairs[num2words(n, lang="en")] == num2words(n, lang="de")
    assert pairs["Wednesday"] == "Mittwoch"
    assert pairs["on Saturday"] == "am Samstag"
    assert pairs["in December"] == "im Dezember"


@pytest.mark.parametrize("split", ["train", "test"])
def test_short_and_long_sentences_are_frequent(
    problem: TranslateEndeNumbers, split: str
) -> None:
    lengths = [len(en.split()) for en, _ in problem.pairs(split)]
    assert sum(length <= 7 for length in lengths) >= len(lengths) / 2
    assert sum(length >= 10 for length in lengths) >= len(lengths) / 4


def test_splits_share_no_values(problem: TranslateEndeNumbers) -> None:
    for one, other in (("test", "train"), ("val", "train"), ("test", "val")):
        assert not values(problem, one) & values(problem, other)


def test_splits_share_no_day_with_or_without_a_year(
    problem: TranslateEndeNumbers,
) -> None:
    days = {
        split: {v[1:3] for v in values(problem, split) if v[0] == "date"}
        for split in SPLITS
    }
    assert not days["test"] & days["train"]
    assert not days["val"] & days["train"]


def test_splits_share_no_number_of_100_or_more(
    problem: TranslateEndeNumbers,
) -> None:
    train = large_numbers(problem, "train")
    assert not large_numbers(problem, "test") & train
    assert not large_numbers(problem, "val") & train


def test_round_numbers_of_the_training_split_are_frequent(
    problem: TranslateEndeNumbers,
) -> None:
    counts = Counter(v for item in problem.items("train") for v in item.values)
    train = partition(random.Random(corpus.SEED))["train"]
    assert {100, 200, 300} <= set(train.hundreds)
    hundreds = {n for n in train.hundreds if n % 100 == 0}
    thousands = {n for n in train.thousands if n % 1000 == 0}
    assert min(counts["number", n] for n in hundreds | thousands) >= 30
    assert max(counts["number", n] for n in train.hundreds if n % 100) < 30


def test_training_has_every_english_word_of_the_other_splits(
    problem: TranslateEndeNumbers,
) -> None:
    words = {
        split: {
            word
            for en, _ in problem.pairs(split)
            for word in en.lower().replace("-", " ").replace(".", "").split()
        }
        for split in SPLITS
    }
    assert words["test"] | words["val"] <= words["train"]
    assert len(words["train"]) < 400


def german_of(value: Value) -> tuple[str, ...]:
    """Returns German words for a value, according to num2words."""
    kind, parts = value[0], [part for part in value if isinstance(part, int)]
    if kind in ("number", "count"):
        return (num2words(parts[0], lang="de"),)
    if kind == "ordinal":
        return (num2words(parts[0], lang="de", to="ordinal"),)
    if kind == "price":
        units = zip(parts, ("Euro", "Cent"), strict=True)
        return tuple(
            f"{num2words(n, lang='de')} {unit}" if n > 1 else unit
            for n, unit in units
            if n
        )
    if kind == "date":
        day = num2words(parts[0], lang="de", to="ordinal")
        years = [num2words(year, lang="de", to="year") for year in parts[2:]]
        return (day, " ".join([MONTHS[parts[1] - 1], *years]))
    return ()


def test_german_values_agree_with_num2words(
    problem: TranslateEndeNumbers,
) -> None:
    checked: Counter[str | int] = Counter()
    for split, every in (("train", 10), ("val", 1), ("test", 1)):
        for item in problem.items(split)[::every]:
            for value in item.values:
                for words in german_of(value):
                    assert words.lower() in item.target.lower(), (value, item)
                    checked[value[0]] += 1
    assert min(checked.values()) > 400


def test_english_sentence_has_one_german_translation() -> None:
    values = partition(random.Random(corpus.SEED))["val"]
    maker = SentenceMaker(random.Random(5), values)
    translations: dict[str, str] = {}
    repeated = 0
    for _ in range(6_000):
        for kind in KINDS:
            item = maker.make(kind)
            translation = translations.setdefault(item.source, item.target)
            assert translation == item.target
            repeated += translation is not item.target
    assert repeated > 500  # Otherwise the test would compare too few.


def test_text_is_clean(problem: TranslateEndeNumbers) -> None:
    for split in SPLITS:
        for pair in problem.pairs(split):
            for line in pair:
                assert line == " ".join(line.split())
                assert "_" not in line and "{" not in line and ",," not in line
                assert not line.endswith(",")


def test_generation_is_reproducible(problem: TranslateEndeNumbers) -> None:
    before, fingerprint = list(problem.pairs("val")), problem.fingerprint()
    corpus._generate.cache_clear()
    corpus._digest.cache_clear()
    again = TranslateEndeNumbers()
    assert list(again.pairs("val")) == before
    assert again.fingerprint() == fingerprint


def test_fingerprint_depends_on_the_generator(
    problem: TranslateEndeNumbers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digest() -> str:
        corpus._digest.cache_clear()
        return problem.fingerprint()

    fingerprints = {digest()}
    for name, value in (
        ("SEED", corpus.SEED + 1),
        ("SIZES", corpus.SIZES | {"train": 49_999}),
        ("KINDS", corpus.KINDS[::-1]),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(corpus, name, value)
            corpus._generate.cache_clear()
            fingerprints.add(digest())
        corpus._generate.cache_clear()
    assert len(fingerprints) == 4
    assert digest() in fingerprints


def test_limited_generation_returns_the_first_items() -> None:
    assert corpus._generate("val", 20) == corpus._generate("val")[:20]


def test_languages_and_description(problem: TranslateEndeNumbers) -> None:
    assert (problem.source_lang, problem.target_lang) == ("en", "de")
    assert problem.description("test") == (
        "translate_ende_numbers, generated test split, 2,000 lines"
    )


def test_rejects_an_unknown_split(problem: TranslateEndeNumbers) -> None:
    with pytest.raises(UserError, match=r"dev.*train, val, test"):
        list(problem.pairs("dev"))
