"""Encodes and decodes texts with the real tensor2tensor's SubwordTextEncoder.

    tensor2tensor_subwords.py VOCAB_FILE

It stands alone and runs under Python 3.7 with tensorflow 1.15.5 and tensor2tensor
1.15.7. A request is a list of texts; the answer has `coded`, for each its ids, without
EOS, and the text that they decode to.
"""

import sys

from tensor2tensor.data_generators import text_encoder
from turns import turns


def main() -> None:
    """Answers every request with what tensor2tensor makes of its texts."""
    encoder = text_encoder.SubwordTextEncoder(sys.argv[1])
    for texts, answer in turns():
        ids = [encoder.encode(text) for text in texts]
        answer["coded"] = [[row, encoder.decode(row)] for row in ids]


if __name__ == "__main__":
    main()
