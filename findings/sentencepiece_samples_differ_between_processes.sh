#!/usr/bin/env bash
# SentencePiece 0.2.3: a vocabulary from a sampled text differs in every process.
#
# A good engineer would guess that training twice on the same text gives the same file,
# at least after set_random_generator_seed: the function sets "the" seed, and encoding
# with sampling obeys it. With a text of up to input_sentence_size lines, the files are
# equal. With more lines, the trainer draws a sample whose random numbers are seeded by
# the process, whatever the seed, and four processes write four different models.
#
# Meaning for translation models: a vocabulary of a corpus of millions of lines cannot
# be built again, and machines that divide a corpus among them, each of which builds the
# vocabulary from the same text, encode their parts with different ids. Draw the sample
# yourself, and give the trainer no more lines than input_sentence_size.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-compile 'sentencepiece==0.2.3'

cat > "$folder/train.py" <<'PYTHON'
import hashlib
import io
import sys

import sentencepiece

sentencepiece.set_random_generator_seed(7)
model = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=(f"{number} {number**2 % 1009}" for number in range(1000)),
    model_writer=model,
    model_type="bpe",
    vocab_size=80,
    input_sentence_size=int(sys.argv[1]),
    shuffle_input_sentence=True,
    num_threads=1,
    minloglevel=2,
)
print(hashlib.sha256(model.getvalue()).hexdigest()[:12])
PYTHON

for size in 1000 200; do
  for _ in 1 2 3 4; do
    "$folder/venv/bin/python" "$folder/train.py" "$size"
  done > "$folder/$size"
  echo "1,000 lines, input_sentence_size $size:" $(cat "$folder/$size")
done
if [ "$(sort -u "$folder/1000" | wc -l)" != 1 ] || [ "$(sort -u "$folder/200" | wc -l)" != 4 ]; then
  echo "changed: samples do not differ between processes as stated" >&2
  exit 1
fi
