"""Code excerpts in docs/explanation/paper_in_code.md match the files."""

import re

import pytest

from tests.run_command import ROOT

PAGE = ROOT / "docs" / "explanation" / "paper_in_code.md"


def excerpts():
    """Returns (file, code) for each excerpt; the file is the last one before it."""
    result, file = [], ""
    for name, code in re.findall(
        r"^From `([^`]+)`|^```py\n(.*?)^```$",
        PAGE.read_text(encoding="utf-8").replace("From `", "\nFrom `"),
        re.MULTILINE | re.DOTALL,
    ):
        file = name or file
        if code:
            result.append((file, code))
    return result


def test_excerpts_are_from_all_parts():
    assert len({file for file, _ in excerpts()}) >= 9


def unspaced(code):
    """Removes white space and trailing commas, which depend on the line length."""
    return re.sub(r",(?=[)\]}])", "", "".join(code.split()))


@pytest.mark.parametrize(("file", "code"), excerpts())
def test_excerpt_is_in_its_file(file, code):
    assert unspaced(code) in unspaced((ROOT / file).read_text(encoding="utf-8"))
