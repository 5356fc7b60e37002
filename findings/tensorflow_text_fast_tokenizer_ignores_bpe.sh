#!/usr/bin/env bash
# FastSentencepieceTokenizer of tensorflow-text 2.21.1 treats BPE models as unigram.
#
# tensorflow-text has two tokenizers for SentencePiece files: SentencepieceTokenizer
# wraps SentencePiece itself, and FastSentencepieceTokenizer is a separate
# implementation, which TensorFlow Lite can run. A good engineer would guess that
# both return equal ids for a valid file, or that the second rejects what it does not
# support. It accepts a BPE model, does not look at its type, and returns the
# segmentation with the greatest sum of scores. In a BPE model the scores are ranks
# of merges, not log probabilities. For the merges ▁t, he, ▁the (scores 0, -1, -2)
# BPE gives "▁the", and the fast tokenizer "▁t", "he", because -1 is greater than -2.
# For the same file with the type unigram both agree. Decoding restores the text.
#
# Source: tensorflow_text/python/ops/fast_sentencepiece_tokenizer.py, whose
# docstring names no model type; its model converter accepts the file.
#
# Meaning for translation models: a model that was exported with the fast tokenizer
# gets other ids than in training if its vocabulary is BPE, and translates worse.
# Round trips of text do not find this: compare ids.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-compile 'tensorflow-text==2.21.1' \
  'tensorflow==2.21.0' 'sentencepiece==0.2.3'

TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES='' "$folder/venv/bin/python" - <<'PYTHON'
import sys

import tensorflow_text
from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2


def tokenize(model_type: str) -> tuple[list[str], list[str], list[str], str]:
    """Returns the pieces of three programs, and the fast one's decoded text."""
    proto = sentencepiece_model_pb2.ModelProto()
    proto.trainer_spec.model_type = proto.trainer_spec.ModelType.Value(model_type)
    proto.normalizer_spec.name = "identity"
    proto.pieces.add(piece="<unk>", type=2)
    proto.pieces.add(piece="<s>", type=3)
    proto.pieces.add(piece="</s>", type=3)
    for rank, piece in enumerate(["▁t", "he", "▁the", "▁", "t", "h", "e"]):
        proto.pieces.add(piece=piece, score=-float(rank))
    model = proto.SerializeToString()
    original = SentencePieceProcessor(model_proto=model)
    wrapped = tensorflow_text.SentencepieceTokenizer(model)
    fast = tensorflow_text.FastSentencepieceTokenizer(model)
    ids = (
        original.encode("the"),
        wrapped.tokenize("the").numpy().tolist(),
        fast.tokenize("the").numpy().tolist(),
    )
    text = fast.detokenize(fast.tokenize(["the"]))[0].numpy().decode()
    return *(list(map(original.id_to_piece, row)) for row in ids), text


bpe, unigram = tokenize("BPE"), tokenize("UNIGRAM")
print("SentencePiece, SentencepieceTokenizer, FastSentencepieceTokenizer, decoded")
print("BPE    ", *bpe)
print("unigram", *unigram)
if unigram != (["▁t", "he"], ["▁t", "he"], ["▁t", "he"], "the"):
    sys.exit("changed: the programs do not agree on the unigram model")
if bpe != (["▁the"], ["▁the"], ["▁t", "he"], "the"):
    sys.exit("changed: the fast tokenizer does not split a BPE model as unigram")
PYTHON
