"use strict";
// One side of a Marian model: a vocabulary numbers the pieces of a SentencePiece model, as
// in t2t_repro/tokenizers/plain_tokenizer.py.

const LABEL = "^>>[^<>\\t\\n\\f\\r ]+<<"; // A language label at the beginning of a text.

class MarianSide {
  // data: pieces by id, the SentencePiece model or null (texts consist of pieces, separated
  // by spaces), whether a text may begin with a label, the piece before every text (`start`)
  // or null, and the pieces that are never split (`added`), the longest first, each with
  // whether decoding omits it.
  constructor({ pieces, model, labels, start, added }) {
    this.names = pieces;
    this.model = model && new SentencePiece(model);
    const escaped = added.map(([piece]) => piece.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
    const whole = [...(labels ? [LABEL] : []), ...escaped].join("|");
    this.whole = whole && new RegExp(`(${whole})`);
    this.spellings = new Map(added.map(([piece, isOmitted]) => [piece, isOmitted ? "" : SPACE + piece]));
    this.ids = new Map(pieces.map((piece, id) => [piece, id]).slice(EOS + 1));
    this.unknown = this.ids.get("<unk>");
    this.start = start === null ? [] : [this.ids.get(start)];
  }

  encode(text) {
    // Labels and added pieces are between the other parts.
    const parts = this.whole ? text.split(this.whole) : [text];
    const pieces = parts.flatMap((part, at) => (at % 2 ? [part] : this.split(part)));
    return [...this.start, ...pieces.map((piece) => this.ids.get(piece) ?? this.unknown)];
  }

  split(text) {
    return this.model ? this.model.split(text).map(([piece]) => piece) : text.match(/[^ \t\n\v\f\r]+/g) || [];
  }

  decode(ids) {
    const spelled = ids.map((id) => this.spellings.get(this.names[id]) ?? this.names[id]);
    if (!this.model) return spelled.join(" ");
    const text = this.model.decodePieces(spelled).replaceAll(SPACE, " ");
    return text.replace(/^[ \t\n\v\f\r]+|[ \t\n\v\f\r]+$/g, "");
  }
}
