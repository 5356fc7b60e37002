"""Tests of the pairs of XLIFF files."""

import pytest

from t2t_repro.formats.pairs import read_pairs


def read(tmp_path, body, version="1.2"):
    path = tmp_path / "a.xlf"
    if version == "1.2":
        body = f'<file source-language="en-GB" target-language="de">{body}</file>'
    languages = 'srcLang="en" trgLang="de-DE"' if version == "2.0" else ""
    path.write_text(f'<xliff version="{version}" {languages}>\n{body}</xliff>')
    return list(read_pairs(path, "en", "de"))


# The rules of XLIFF 1.2 for `approved` (default: no) and the states of `target`. Most
# programs do not write `approved`, so only approved="no" excludes a translation.
@pytest.mark.parametrize(
    ("approved", "state", "is_pair"),
    [
        ("", "", True),
        ("", ' state="translated"', True),
        ("", ' state="needs-review-translation"', False),
        ("", ' state="new"', False),
        (' approved="no"', "", False),
        (' approved="no"', ' state="translated"', False),
        (' approved="no"', ' state="final"', True),
        (' approved="no"', ' state="signed-off"', True),
        (' approved="yes"', ' state="needs-review-l10n"', True),
    ],
)
def test_only_finished_translations_are_pairs(tmp_path, approved, state, is_pair):
    body = (
        "<trans-unit id='1'><source>Tea</source><target>Tee</target></trans-unit>\n"
        f"<trans-unit id='2'{approved}><source>Milk</source>"
        f"<target{state}>Milch</target></trans-unit>"
    )
    pairs = [("Tea", "Tee", "unit 1, line 2")]
    if is_pair:
        pairs.append(("Milk", "Milch", "unit 2, line 3"))
    assert read(tmp_path, body) == pairs


def test_segments_proposals_and_codes_of_version_1(tmp_path):
    body = """<trans-unit id="7"><source>One. Two.</source>
    <seg-source><mrk mtype="seg" mid="a">One <g id="1">big</g>.</mrk>
    <mrk mtype="seg" mid="b">Two.</mrk></seg-source>
    <target><mrk mtype="seg" mid="b">Zwei <mrk mtype="term">x</mrk>.</mrk>
    <mrk mtype="seg" mid="a">Eins<ph id="2">[<sub>no</sub>]</ph>.</mrk></target>
    <alt-trans><source>Old</source><target>Alt</target></alt-trans></trans-unit>"""
    assert read(tmp_path, body) == [
        ("One big.", "Eins.", "unit 7, segment a, line 2"),
        ("Two.", "Zwei x.", "unit 7, segment b, line 2"),
    ]


def test_segments_and_modules_of_version_2(tmp_path):
    body = """<file><unit id="u"><mtc:matches><mtc:match><source>Old</source>
    <target>Alt</target></mtc:match></mtc:matches>
    <segment><source>An <pc>old</pc> hat<ph/></source><target>Ein Hut</target></segment>
    <ignorable><source> </source><target> </target></ignorable>
    <segment state="initial"><source>Hm</source><target>Tja</target></segment>
    <segment state="reviewed"><source>So</source><target>Also</target></segment>
    </unit></file>"""
    assert read(tmp_path, body, "2.0") == [
        ("An old hat", "Ein Hut", "unit u, line 4"),
        ("So", "Also", "unit u, line 7"),
    ]
