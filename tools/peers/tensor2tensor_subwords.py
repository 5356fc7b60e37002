"""Encodes and decodes texts with the real tensor2tensor's SubwordTextEncoder.

The peer of tools/compare_subwords.py. It stands alone and runs under Python 3.7 with
tensorflow 1.15.5 and tensor2tensor 1.15.7, where t2t_repro cannot be imported; its
syntax keeps to that version.

    python tensor2tensor_subwords.py --vocab_file vocab.subwords < requests

Each line of stdin is a JSON list of texts; each is answered by one line on stdout, a
JSON list of `[ids, decoded]`: a text's ids, without EOS, and the text that they
decode to.
"""

import argparse
import json
import sys

from tensor2tensor.data_generators import text_encoder


def main() -> None:
    """Answers every request with what tensor2tensor makes of its texts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--vocab_file", required=True)
    encoder = text_encoder.SubwordTextEncoder(parser.parse_args().vocab_file)
    for request in sys.stdin:
        answer = []
        for text in json.loads(request):
            ids = encoder.encode(text)
            answer.append([ids, encoder.decode(ids)])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
