#!/usr/bin/env bash
# SentencePiece applies merges that subword-nmt, given the same merges, does not.
#
# Both implement byte pair encoding. A good engineer would guess that a list of
# merges in order, written as a SentencePiece model whose pieces have falling
# scores in the same order, splits words equally. It does not: subword-nmt merges
# two symbols only if this very pair is in its list. SentencePiece merges any
# two symbols whose concatenation is a piece.
#
# The merges are b+c, a+b, ab+c. In "abc", b+c comes first and leaves a, bc. The
# pair (a, bc) is not in the list, so that subword-nmt 0.3.8 ends with "a bc".
# SentencePiece 0.2.3 finds the piece "abc" and ends with "abc". tokenizers
# 0.23.3 agrees with subword-nmt for the three merges, and with SentencePiece
# if the pair (a, bc) is added: a converter has to add every such pair.
#
# Source: subword_nmt/apply_bpe.py, encode (looks up the pair); SentencePiece's
# src/bpe_model.cc, SampleEncode (looks up the concatenation).
#
# Meaning for translation models: a vocabulary of subword-nmt (fairseq, Nematus)
# written as a SentencePiece file gives other ids for some words. The model
# still translates, but worse, and only a comparison of ids shows why.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-compile 'subword-nmt==0.3.8' 'sentencepiece==0.2.3' \
  'tokenizers==0.23.3' 'protobuf>=6,<8'

"$folder/venv/bin/python" - <<'PYTHON'
import io
import sys

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from subword_nmt.apply_bpe import BPE
from tokenizers import Tokenizer, models

merges = [("b", "c"), ("a", "b"), ("ab", "c")]
# subword-nmt marks the last symbol of a word.
codes = "#version: 0.2\nb c</w>\na b\nab c</w>\n"
subword_nmt = BPE(io.StringIO(codes)).segment("abc").replace("@@", "").split()

proto = sentencepiece_model_pb2.ModelProto()
proto.trainer_spec.model_type = proto.trainer_spec.BPE
proto.normalizer_spec.name = "identity"
proto.normalizer_spec.add_dummy_prefix = False
proto.pieces.add(piece="<unk>", type=2)
for rank, piece in enumerate(["bc", "ab", "abc", "a", "b", "c"]):
    proto.pieces.add(piece=piece, score=-float(rank))
processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
spm = processor.encode("abc", out_type=str)

vocab = {piece.piece: number for number, piece in enumerate(proto.pieces)}
three = Tokenizer(models.BPE(vocab=vocab, merges=merges)).encode("abc").tokens
four = [*merges, ("a", "bc")]
added = Tokenizer(models.BPE(vocab=vocab, merges=four)).encode("abc").tokens

print("subword-nmt            ", subword_nmt)
print("SentencePiece          ", spm)
print("tokenizers, 3 merges   ", three)
print("tokenizers, and (a, bc)", added)
if (subword_nmt, spm) != (["a", "bc"], ["abc"]):
    sys.exit("changed: subword-nmt and SentencePiece do not differ as stated")
if (three, added) != (["a", "bc"], ["abc"]):
    sys.exit("changed: tokenizers does not look up the pair of symbols")
PYTHON
