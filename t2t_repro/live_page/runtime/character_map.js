"use strict";
// SentencePiece's normalization of text, and conversions of UTF-8.

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
