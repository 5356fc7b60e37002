"use strict";
// SentencePiece's byte-pair encoding (section 5.1), with the same ids as the library.

const SPACE = "\u2581"; // SentencePiece's symbol for a space.
const NORMAL = 1, UNKNOWN = 2, CONTROL = 3, UNUSED = 5, BYTE = 6; // Kinds of pieces.

// A compiled character map: a double-array trie over UTF-8 (Darts) and the replacements.
class CharacterMap {
  constructor(blob) {
    const size = new DataView(blob.buffer, blob.byteOffset).getUint32(0, true);
    this.units = new Uint32Array(blob.slice(4, 4 + size).buffer);
    this.answers = blob.subarray(4 + size);
  }

  // Returns [length, replacement] of the longest match at bytes[at].
  longest(bytes, at) {
    const offset = (unit) => (unit >>> 10) << ((unit & 512) >>> 6);
    let unit = this.units[0];
    let node = offset(unit);
    let found = null;
    for (let end = at; end < bytes.length; end++) {
      node ^= bytes[end];
      unit = this.units[node];
      if (unit === undefined || (unit & 0x800000ff) !== bytes[end]) break;
      node ^= offset(unit);
      if ((unit >>> 8) & 1) found = [end + 1 - at, this.units[node] & 0x7fffffff];
    }
    if (!found) return null;
    return [found[0], this.answers.subarray(found[1], this.answers.indexOf(0, found[1]))];
  }

  apply(text) {
    const bytes = new TextEncoder().encode(text);
    const parts = [];
    for (let at = 0; at < bytes.length; ) {
      let [length, answer] = this.longest(bytes, at) || [0, null];
      if (!answer) {
        length = 1;
        while ((bytes[at + length] & 0xc0) === 0x80) length++; // The remaining bytes of the character.
        answer = bytes.subarray(at, at + length);
      }
      parts.push(new TextDecoder("utf-8", { ignoreBOM: true }).decode(answer));
      at += length;
    }
    return parts;
  }
}

// A priority queue; `isBefore` orders the items.
class Heap {
  constructor(isBefore) {
    Object.assign(this, { isBefore, items: [] });
  }

  push(item) {
    let at = this.items.push(item) - 1;
    while (at && this.isBefore(item, this.items[(at - 1) >> 1])) {
      this.items[at] = this.items[(at - 1) >> 1];
      at = (at - 1) >> 1;
    }
    this.items[at] = item;
  }

  pop() {
    const first = this.items[0];
    const item = this.items.pop();
    const { length } = this.items;
    if (!length) return first;
    let at = 0;
    for (let child = 1; child < length; child = 2 * at + 1) {
      if (child + 1 < length && this.isBefore(this.items[child + 1], this.items[child])) child++;
      if (!this.isBefore(this.items[child], item)) break;
      this.items[at] = this.items[child];
      at = child;
    }
    this.items[at] = item;
    return first;
  }
}

class SentencePiece {
  // data: pieces [text, score, kind], the character maps (base64 or ""), the text of
  // unknown pieces (`unknown`), and two options.
  constructor(data) {
    this.data = data;
    this.names = data.pieces.map(([piece]) => piece);
    const map = (blob) => (blob ? new CharacterMap(bytesOf(blob)) : { apply: (text) => [...text] });
    this.normalizer = map(data.normalizer);
    this.denormalizer = map(data.denormalizer);
    this.ids = new Map();
    data.pieces.forEach(([piece, , kind], id) => {
      if (kind === NORMAL || kind === UNUSED) this.ids.set(piece, id);
      if (kind === UNKNOWN) this.unknown = id;
      if (kind === BYTE) this.firstByte ??= id; // Byte pieces have consecutive ids.
    });
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

  // Repeatedly merges the adjacent pair with the best score, and the leftmost of equal
  // ones, until no adjacent pair forms a piece.
  encode(text) {
    const symbols = [...this.normalize(text)].map((piece, at) => ({ piece, before: at - 1, after: at + 1, splits: null }));
    const queue = new Heap((a, b) => a.score > b.score || (a.score === b.score && a.left < b.left));
    const madeOf = new Map(); // The parts of unused pieces, which are split again at the end.
    const offer = (left, right) => {
      if (left < 0 || right >= symbols.length) return;
      const piece = symbols[left].piece + symbols[right].piece;
      const id = this.ids.get(piece);
      if (id === undefined) return;
      const [, score, kind] = this.data.pieces[id];
      if (kind === UNUSED) madeOf.set(piece, [symbols[left].piece, symbols[right].piece]);
      queue.push({ left, right, score, length: piece.length });
    };
    for (let at = 0; at + 1 < symbols.length; at++) offer(at, at + 1);
    while (queue.items.length) {
      const { left, right, length } = queue.pop();
      const [a, b] = [symbols[left], symbols[right]];
      // Skips pairs of which one part has been merged in the meantime.
      if (!a.piece || !b.piece || a.piece.length + b.piece.length !== length) continue;
      a.piece += b.piece;
      a.after = b.after;
      if (b.after < symbols.length) symbols[b.after].before = left;
      b.piece = "";
      offer(a.before, left);
      offer(left, a.after);
    }
    const ids = symbols.filter(({ piece }) => piece).flatMap(({ piece }) => this.idsOf(piece, madeOf));
    if (this.firstByte !== undefined) return ids;
    // Consecutive unknown pieces are merged.
    return ids.filter((id, at) => id !== this.unknown || ids[at - 1] !== this.unknown);
  }

  idsOf(piece, madeOf) {
    const id = this.ids.get(piece);
    if (id !== undefined && this.data.pieces[id][2] === UNUSED && madeOf.has(piece)) {
      return madeOf.get(piece).flatMap((part) => this.idsOf(part, madeOf));
    }
    if (id !== undefined) return [id];
    if (this.firstByte === undefined) return [this.unknown];
    return [...new TextEncoder().encode(piece)].map((byte) => this.firstByte + byte);
  }

  decode(ids) {
    const { removeSpaces, addPrefix } = this.data;
    // Removes the space that the encoder has inserted. tensorflow_text removes a leading
    // space from each piece until the text is not empty. The Python tokenizer corrects
    // this for vocabularies with byte pieces.
    const dropsSpaces = removeSpaces || (addPrefix && this.firstByte === undefined);
    const end = ids.indexOf(EOS);
    let text = "";
    let bytes = [];
    const flush = () => {
      text += utf8Text(bytes);
      bytes = [];
    };
    for (const id of ids.slice(0, end < 0 ? ids.length : end)) {
      const [piece, , kind] = this.data.pieces[id] || ["", 0, CONTROL];
      if (kind === BYTE) {
        bytes.push(id - this.firstByte);
        continue;
      }
      flush();
      if (kind === UNKNOWN) text += this.data.unknown;
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

// Decodes UTF-8; each invalid byte becomes U+FFFD.
function utf8Text(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at];
    const length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    try {
      const part = Uint8Array.from(bytes.slice(at, at + length));
      text += new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(part);
      at += length;
    } catch {
      text += "\ufffd";
      at += 1;
    }
  }
  return text;
}
