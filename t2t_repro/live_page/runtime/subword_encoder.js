"use strict";
// tensor2tensor's invertible word pieces, equal to t2t_repro/tokenizers/word_pieces.py.

class WordPieces {
  // data: pieces in the order of their ids, and boundaries: the code points at which
  // ranges of letters and digits alternately begin and end.
  constructor(data) {
    this.names = data.pieces;
    this.boundaries = data.boundaries;
    this.ids = new Map();
    this.longest = 0;
    data.pieces.forEach((piece, id) => {
      if (id < 2) return; // PAD and EOS
      this.ids.set(piece, id); // The last id of duplicate pieces counts.
      this.longest = Math.max(this.longest, [...piece].length);
    });
  }

  isAlphanumeric(character) {
    const code = character.codePointAt(0);
    let low = 0;
    let high = this.boundaries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.boundaries[middle] <= code) low = middle + 1;
      else high = middle;
    }
    return low % 2 === 1;
  }

  spell(character) {
    if (character === "\\") return ["\\", "\\"];
    if (character === "_") return ["\\", "u"];
    if (this.ids.has(character) && character !== "\n") return [character];
    return [..."\\", ...String(character.codePointAt(0)), ";"];
  }

  // Splits a text between alphanumeric and other characters, and drops single spaces
  // between alphanumeric words.
  words(text) {
    const runs = [];
    let before = null;
    for (const character of text) {
      const kind = this.isAlphanumeric(character);
      if (kind === before) runs[runs.length - 1].push(character);
      else runs.push([character]);
      before = kind;
    }
    // A space that is not in the vocabulary is escaped and not dropped.
    const isLeftOut = (run) => run.length === 1 && run[0] === " " && this.ids.has(" ");
    return runs.filter((run, at) => !isLeftOut(run) || at === 0 || at === runs.length - 1);
  }

  encode(text) {
    return this.words(text).flatMap((word) => {
      const spelled = [...word.flatMap((character) => this.spell(character)), "_"];
      const ids = [];
      for (let at = 0; at < spelled.length; ) {
        let size = Math.min(this.longest, spelled.length - at);
        while (size > 1 && !this.ids.has(spelled.slice(at, at + size).join(""))) size--;
        ids.push(this.ids.get(spelled.slice(at, at + size).join("")));
        at += size;
      }
      return ids;
    });
  }

  decode(ids) {
    const words = ids.map((id) => this.names[id]).join("").split("_").filter((word) => word).map(unescapePiece);
    const isLetters = words.map((word) => word !== "" && this.isAlphanumeric(word));
    return words.map((word, at) => (at && isLetters[at - 1] && isLetters[at] ? ` ${word}` : word)).join("");
  }
}

function unescapePiece(word) {
  return word.replace(/\\\\|\\u|\\([0-9]+);/g, (escape, digits) => {
    if (escape === "\\\\") return "\\";
    if (escape === "\\u") return "_";
    const code = Number(digits);
    const isCharacter = code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return isCharacter ? String.fromCodePoint(code) : "\u3013";
  });
}
