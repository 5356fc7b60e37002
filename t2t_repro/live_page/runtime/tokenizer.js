"use strict";
// The vocabularies of both sides.

class Tokenizer {
  // data: the vocabulary of the source, and `target` if the target has its own.
  constructor(data) {
    const kinds = { SentencePiece, "word pieces": WordPieces, Marian: MarianSide };
    this.source = new kinds[data.kind](data);
    this.target = data.target ? new kinds[data.target.kind](data.target) : this.source;
  }

  encode(text) {
    return this.source.encode(text);
  }

  // Returns the translation before the first EOS.
  decode(ids) {
    const end = ids.indexOf(EOS);
    const kept = ids.slice(0, end < 0 ? ids.length : end);
    return this.target.decode(kept.filter((id) => id > PAD && id < this.target.names.length));
  }
}
