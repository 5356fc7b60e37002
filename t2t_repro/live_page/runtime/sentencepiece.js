"use strict";
// SentencePiece's models, with the same ids as the library.

const SPACE = "\u2581"; // SentencePiece's symbol for a space.
const NORMAL = 1, UNKNOWN = 2, CONTROL = 3, UNUSED = 5, BYTE = 6; // Kinds of pieces.

// Returns the ids of the pieces of some kinds, by piece.
function idsOfKinds(pieces, ...kinds) {
  const ids = new Map();
  pieces.forEach(([piece, , kind], id) => {
    if (kinds.includes(kind)) ids.set(piece, id);
  });
  return ids;
}

class SentencePiece {
  // data: pieces [text, score, kind], whether they are a unigram model, the character maps
  // (base64 or ""), the text of unknown pieces (`unknown`), and two options.
  constructor(data) {
    this.data = data;
    this.names = data.pieces.map(([piece]) => piece);
    this.kinds = new Map(data.pieces.map(([piece, , kind]) => [piece, kind]));
    this.model = new (data.isUnigram ? Unigram : BytePairs)(data.pieces);
    this.unknown = data.pieces.findIndex(([, , kind]) => kind === UNKNOWN);
    this.bytes = [...idsOfKinds(data.pieces, BYTE).values()]; // By the value of the byte.
    const map = (blob) => (blob ? new CharacterMap(bytesOf(blob)) : { apply: (text) => [...text] });
    this.normalizer = map(data.normalizer);
    this.denormalizer = map(data.denormalizer);
  }

  normalize(text) {
    const { removeSpaces, addPrefix } = this.data;
    let parts = this.normalizer.apply(text);
    if (removeSpaces) while (parts.length && parts[0] === " ") parts.shift();
    if (!parts.length) return "";
    let isAfterSpace = removeSpaces;
    parts = parts.map((part) => {
      const kept = isAfterSpace ? part.replace(/^ +/, "") : part;
      if (kept && removeSpaces) isAfterSpace = kept.endsWith(" ");
      return kept;
    });
    const normalized = ((addPrefix ? " " : "") + parts.join("")).replaceAll(" ", SPACE);
    return removeSpaces ? normalized.replace(/\u2581+$/, "") : normalized;
  }

  // Returns [piece, id] of each piece of a text.
  split(text) {
    const found = [];
    let wasUnknown = false;
    for (const piece of this.model.split(this.normalize(text))) {
      const id = this.model.ids.get(piece);
      if (id !== undefined) found.push([piece, id]);
      else if (this.bytes.length) {
        for (const byte of new TextEncoder().encode(piece)) found.push([this.names[this.bytes[byte]], this.bytes[byte]]);
      } else if (wasUnknown) found.at(-1)[0] += piece; // Consecutive unknown pieces are merged.
      else found.push([piece, this.unknown]);
      wasUnknown = id === undefined;
    }
    return found;
  }

  encode(text) {
    return this.split(text).map(([, id]) => id);
  }

  decode(ids) {
    return this.decodePieces(ids.map((id) => this.names[id]));
  }

  // Pieces that the model lacks are text.
  decodePieces(pieces) {
    const { removeSpaces, addPrefix } = this.data;
    // Removes the space that the encoder has inserted. tensorflow_text removes a leading
    // space from each piece until the text is not empty. The Python tokenizer corrects
    // this for vocabularies with byte pieces.
    const dropsSpaces = removeSpaces || (addPrefix && !this.bytes.length);
    let text = "";
    let bytes = [];
    const flush = () => {
      text += utf8Text(bytes);
      bytes = [];
    };
    for (const piece of pieces) {
      const kind = this.kinds.get(piece);
      if (kind === BYTE) {
        bytes.push(parseInt(piece.slice(3, 5), 16)); // For example <0x0A>.
        continue;
      }
      flush();
      if (kind === undefined) text += piece;
      else if (kind === UNKNOWN) text += this.data.unknown;
      else if (kind !== CONTROL) {
        const shown = dropsSpaces && !text ? piece.replace(/^\u2581/, "") : piece;
        text += shown.replaceAll(SPACE, " ");
      }
    }
    flush();
    if (addPrefix && !dropsSpaces) text = text.replace(/^ /, "");
    return this.denormalizer.apply(text).join("");
  }
}
