"""Changes that a training may be told to accept."""

import pytest

from t2t_repro.runs.provenance import check_accepted
from t2t_repro.system.errors import UserError


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["dropuot"], "dropuot: there is no such thing; did you mean 'dropout'"),
        (["vocab_size"], "another vocab_size the weights mean nothing"),
    ],
)
def test_changes_that_cannot_be_accepted_are_named(names, words):
    with pytest.raises(UserError, match=words):
        check_accepted(["data", *names])
