"""What *The paper, read in the code* shows is what the files hold."""

import re

import pytest

from tests.run_command import ROOT

PAGE = ROOT / "docs" / "explanation" / "paper_in_code.md"


def excerpts():
    """Returns each block of code with the file that was named last before it."""
    found, file = [], ""
    for name, code in re.findall(
        r"^From `([^`]+)`|^```py\n(.*?)^```$",
        PAGE.read_text(encoding="utf-8").replace("From `", "\nFrom `"),
        re.MULTILINE | re.DOTALL,
    ):
        file = name or file
        if code:
            found.append((file, code))
    return found


def test_there_are_excerpts_of_every_part():
    assert len({file for file, _ in excerpts()}) >= 9


def unspaced(code):
    """Returns code as if lines were endless: a formatter breaks them by indentation."""
    return re.sub(r",(?=[)\]}])", "", "".join(code.split()))


@pytest.mark.parametrize(("file", "code"), excerpts())
def test_an_excerpt_stands_in_its_file(file, code):
    assert unspaced(code) in unspaced((ROOT / file).read_text(encoding="utf-8"))
