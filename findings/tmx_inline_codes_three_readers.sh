#!/usr/bin/env bash
# Three readers of TMX give three texts for one segment with inline codes.
#
# TMX 1.4b marks formatting in a segment with bpt, ept and ph, whose content is
# the code of the original document. A good engineer would guess that each
# reader returns the sentence without these codes: "Press Start twice."
#
#   translate-toolkit 3.20.4  returns the codes as text: "Press <b>Start</b> twice."
#   mtdata 0.5.1              returns "Press": the text before the first code. It
#                             drops a segment that begins with one and reports
#                             a language mismatch.
#   tmxiterparse 0.1.2        returns the text before the first code, and None for
#                             a segment that begins with one.
#
# Source: mtdata/tmx.py, parse_tmx (findtext), and tmxiterparse, parse_tuv
# (elem.text), read only the text before the first child element.
#
# Meaning for translation models: memories of CAT tools are full of codes. With
# such a reader, a model is trained on cut sentences or on markup.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-compile 'translate-toolkit==3.20.4' 'mtdata==0.5.1' \
  'tmxiterparse==0.1.2'
cd "$folder"

cat >memory.tmx <<'TMX'
<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4">
<header creationtool="hand" creationtoolversion="1" segtype="sentence"
 o-tmf="none" adminlang="en" srclang="en" datatype="html"/>
<body>
<tu><tuv xml:lang="en"><seg>Press <bpt i="1">&lt;b&gt;</bpt>Start<ept i="1">&lt;/b&gt;</ept> twice.</seg></tuv>
<tuv xml:lang="de"><seg>Zweimal <bpt i="1">&lt;b&gt;</bpt>Start<ept i="1">&lt;/b&gt;</ept> tippen.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg><ph x="1">&lt;br/&gt;</ph>A red car.</seg></tuv>
<tuv xml:lang="de"><seg><ph x="1">&lt;br/&gt;</ph>Ein rotes Auto.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>A tree.</seg></tuv>
<tuv xml:lang="de"><seg>Ein Baum.</seg></tuv></tu>
</body>
</tmx>
TMX

# mtdata keeps a cache in the home directory.
HOME=$folder venv/bin/python - <<'PYTHON'
import sys

from mtdata.tmx import read_tmx
from tmxiterparse.tmxparser import TmxParser
from translate.storage.tmx import tmxfile

with open("memory.tmx", "rb") as file:
    toolkit = [unit.source for unit in tmxfile.parsefile(file).units]
mtdata = [source for source, _ in read_tmx("memory.tmx", langs=("en", "de"))]
iterparse = []
with TmxParser("memory.tmx") as parser:
    while (unit := next(parser, None)) is not None:
        iterparse.append(next(v.value for v in unit.values if v.lang == "en"))

print("translate-toolkit", toolkit)
print("mtdata           ", mtdata)
print("tmxiterparse     ", iterparse)
if toolkit != ["Press <b>Start</b> twice.", "<br/>A red car.", "A tree."]:
    sys.exit("changed: translate-toolkit does not return codes as text")
if mtdata != ["Press", "A tree."]:
    sys.exit("changed: mtdata does not cut a segment at its first code")
if iterparse != ["Press ", None, "A tree."]:
    sys.exit("changed: tmxiterparse does not cut a segment at its first code")
PYTHON
