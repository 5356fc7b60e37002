#!/usr/bin/env bash
# chrF of sacreBLEU 2.6.0 does not count lines whose reference is empty.
#
# A good engineer would guess that a hypothesis of five words next to an empty
# reference lowers a corpus score: all that it says is wrong. BLEU and TER do
# lower it. chrF and chrF++ return 100.00 for a file of two lines in which one
# hypothesis is equal to its reference and the other has an empty reference;
# the words on that line change nothing. An empty second reference, on the
# other hand, raises TER: its edits are divided by the average length of all
# references of the line, so that an empty one halves the divisor.
#
# Source: sacrebleu/metrics/chrf.py, _get_match_statistics (no n-grams are
# counted for the hypothesis if the reference has none); sacrebleu/metrics/
# ter.py, _compute_segment_statistics (average of the lengths of references).
#
# Meaning for translation models: count the empty lines of a reference file
# before you compare chrF with BLEU, and do not fill up a missing second
# reference with an empty line.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-compile 'sacrebleu==2.6.0'

"$folder/venv/bin/python" - <<'PYTHON'
import sys

from sacrebleu.metrics import BLEU, CHRF, TER

hypotheses = ["A man walks his dog.", "These five words are wrong."]
empty = [["A man walks his dog.", ""]]
full = [["A man walks his dog.", "Nobody is here."]]
shown = {}
for name, metric in {
    "chrF": CHRF(),
    "chrF++": CHRF(word_order=2),
    "BLEU": BLEU(),
    "TER": TER(),
}.items():
    shown[name] = metric.corpus_score(hypotheses, empty).score
    other = metric.corpus_score(hypotheses, full).score
    print(f"{name:6}  second reference empty {shown[name]:6.2f}, other {other:6.2f}")

one = TER().corpus_score(["a b c d"], [["a b x d"]]).score
two = TER().corpus_score(["a b c d"], [["a b x d"], [""]]).score
print(f"TER of one wrong word in four: {one:.2f}; and an empty reference: {two:.2f}")

if (shown["chrF"], shown["chrF++"]) != (100.0, 100.0) or shown["BLEU"] > 60:
    sys.exit("changed: chrF counts a line whose reference is empty")
if (one, two) != (25.0, 50.0):
    sys.exit("changed: an empty second reference does not double TER")
PYTHON
