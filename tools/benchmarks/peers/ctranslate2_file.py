"""Translates a file with CTranslate2 and SentencePiece.

    ctranslate2_file.py MODEL VOCABULARY TEXT OUTPUT COMPUTE_TYPE BEAM_SIZE LENGTH

Each translation has LENGTH subwords. Each core searches for its own batches, as
CTranslate2's documentation advises for throughput. The script requires ctranslate2 and
sentencepiece.
"""

import os
import sys
from itertools import islice

from ctranslate2 import Translator
from sentencepiece import SentencePieceProcessor

CORES = len(os.sched_getaffinity(0))
LINES_AT_ONCE = 4096


def main():
    """Translates one file."""
    model, vocabulary, text, output, compute_type, beam_size, length = sys.argv[1:]
    processor = SentencePieceProcessor(model_file=vocabulary)
    translator = Translator(
        model, compute_type=compute_type, inter_threads=CORES, intra_threads=1
    )

    def sentences(file):
        while lines := [line.rstrip("\n") for line in islice(file, LINES_AT_ONCE)]:
            for pieces in processor.encode(lines, out_type=str, num_threads=CORES):
                yield [*pieces, "</s>"]

    with open(text, encoding="utf-8") as source, open(output, "w") as target:
        for result in translator.translate_iterable(
            sentences(source),
            beam_size=int(beam_size),
            min_decoding_length=int(length),
            max_decoding_length=int(length),
        ):
            target.write(processor.decode(result.hypotheses[0]) + "\n")


if __name__ == "__main__":
    main()
