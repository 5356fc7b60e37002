#!/usr/bin/env bash
# pysubs2 1.8.1 adds WebVTT comments and cue names to the subtitle before them.
#
# A WebVTT file may have NOTE blocks (comments) between cues, a name on the line
# before the times of a cue, and character references such as &amp;. A good
# engineer would guess that a subtitle library skips comments and names and
# decodes the references. pysubs2 appends the comment and the name of the next
# cue to the text of the previous cue, keeps "&amp;", and drops the speaker of a
# voice tag. Writing the file again makes the comment visible subtitle text.
# webvtt-py 0.6.0 reads the same cues as the specification says, except that
# it also keeps "&amp;".
#
# Source: pysubs2/formats/webvtt.py reads WebVTT with the code for SubRip, in
# which everything between two lines of times is text.
#
# Meaning for translation models: a program that translates the events of
# pysubs2 translates comments of the author, shows them to viewers, and passes
# "&amp;" to the model.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-compile 'pysubs2==1.8.1' 'webvtt-py==0.6.0'
cd "$folder"

cat >talk.vtt <<'VTT'
WEBVTT

first
00:00:01.000 --> 00:00:02.000
Cats &amp; dogs.

NOTE Check this name with the author

second
00:00:03.000 --> 00:00:04.000
<v Anna>Two birds.
VTT

venv/bin/python - <<'PYTHON'
import sys

import pysubs2
import webvtt

subtitles = pysubs2.load("talk.vtt")
events = [event.plaintext for event in subtitles]
captions = [(caption.identifier, caption.text) for caption in webvtt.read("talk.vtt")]
written = subtitles.to_string("vtt")
print("pysubs2:", events)
print("webvtt-py:", captions)
print("pysubs2 writes:", written, sep="\n")
if captions != [("first", "Cats &amp; dogs."), ("second", "Two birds.")]:
    sys.exit("changed: webvtt-py returns other cues")
note = "Cats &amp; dogs.\n\nNOTE Check this name with the author\n\nsecond"
if events != [note, "Two birds."]:
    sys.exit("changed: pysubs2 does not append comments and names to the text")
if "dogs.\nNOTE Check this name" not in written or "Anna" in written:
    sys.exit("changed: pysubs2 does not write the comment as text")
PYTHON
