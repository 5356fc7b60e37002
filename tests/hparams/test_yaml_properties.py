"""Property tests: any file is read as a set or rejected with one line."""

import dataclasses
import math

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from t2t_repro import hparams
from t2t_repro.hparams import HParams
from t2t_repro.hparams.settings import field_types, get_rule
from t2t_repro.system.errors import UserError
from tests import properties


def values_of(field):
    """Returns a strategy for the values that the rule of a field allows."""
    kind, optional, _ = field_types(HParams)[field.name]
    rule = get_rule(field)
    low, below = rule.minimum, rule.below
    if rule.choices:
        values = st.sampled_from(rule.choices)
    elif kind is str:
        values = st.text(min_size=1).filter(str.strip)
    elif kind is bool:
        values = st.booleans()
    elif kind is int:
        values = st.integers(math.ceil(low or 0), math.ceil(below or 2**40) - 1)
    else:
        values = st.floats(low or 0, below, exclude_max=below is not None)
    if rule.plain is not None:
        values |= st.just("auto")
    return values | st.none() if optional else values


FIELDS = {field.name: field for field in dataclasses.fields(HParams)}
CHANGES = st.sets(st.sampled_from(sorted(FIELDS)), max_size=8).flatmap(
    lambda names: st.fixed_dictionaries(
        {n: values_of(FIELDS[n]) for n in sorted(names)}
    )
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
DOCUMENTS = st.dictionaries(
    st.sampled_from([*sorted(FIELDS), "base", "d_modle"]) | st.text() | st.integers(),
    st.recursive(
        SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    ),
    max_size=4,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("sets") / "set.yaml"


@properties.checked
@given(changes=CHANGES)
def test_valid_set_is_saved_and_read_back_unchanged(path, changes):
    try:
        saved = HParams().replace(**changes)
    except UserError:  # Two values contradict each other.
        assume(False)
    saved.save(path)
    assert hparams.read(path) == saved
    assert hparams.load(str(path)) == saved


def read_or_rejected(path):
    try:
        assert isinstance(hparams.load(str(path)), HParams)
    except UserError as error:
        assert "\n" not in str(error)
        assert "\r" not in str(error)
        assert str(path) in str(error) or str(error).startswith("hparams: ")


@properties.checked
@given(document=DOCUMENTS)
def test_any_mapping_is_read_or_rejected_in_one_line(path, document):
    path.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    read_or_rejected(path)


@properties.checked
@given(
    pieces=st.lists(
        st.text(max_size=4)
        | st.sampled_from(
            [
                "seed",
                ": ",
                "\n",
                "- ",
                "[",
                "{",
                "&a ",
                "*a",
                "!!python/name:os.system",
                "? ",
                "<<",
                "%YAML",
                "---",
                "'",
                '"',
                "|",
                "1e9999",
                "2001-99-99",
            ]
        ),
        max_size=12,
    )
)
def test_any_text_is_read_or_rejected_in_one_line(path, pieces):
    path.write_text("".join(pieces), encoding="utf-8")
    read_or_rejected(path)


@properties.checked
@given(contents=st.binary(max_size=60))
def test_any_bytes_are_read_or_rejected_in_one_line(path, contents):
    path.write_bytes(contents)
    read_or_rejected(path)
