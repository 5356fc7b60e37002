"use strict";
// SentencePiece's unigram language model (Kudo 2018, arXiv:1804.10959).

const UNKNOWN_PENALTY = 10; // The score of an unknown character below that of all pieces.

class Unigram {
  constructor(pieces) {
    this.ids = idsOfKinds(pieces, NORMAL);
    this.scores = pieces.map(([, score]) => Math.fround(score));
    const usable = pieces.filter(([, , kind]) => kind === NORMAL);
    this.longest = usable.reduce((most, [piece]) => Math.max(most, [...piece].length), 0);
    const least = usable.reduce((lowest, [, score]) => Math.min(lowest, score), Infinity);
    this.unknownScore = Math.fround(least - UNKNOWN_PENALTY);
  }

  // Finds the pieces of a normalized text with the best sum of scores (Viterbi). The sums
  // are rounded to float32, so that ties are those of the library.
  split(text) {
    const characters = [...text];
    const best = characters.map(() => ({ score: -Infinity, start: -1 })); // Paths by their last character.
    const offer = (start, end, score) => {
      const sum = (start ? best[start - 1].score : 0) + score;
      if (sum > best[end].score) best[end] = { score: Math.fround(sum), start };
    };
    for (let start = 0; start < characters.length; start++) {
      let piece = "";
      for (let end = start; end < Math.min(start + this.longest, characters.length); end++) {
        piece += characters[end];
        const id = this.ids.get(piece);
        if (id !== undefined) offer(start, end, this.scores[id]);
      }
      if (!this.ids.has(characters[start])) offer(start, start, this.unknownScore);
    }
    const pieces = [];
    for (let end = characters.length; end > 0; end = best[end - 1].start) {
      pieces.push(characters.slice(best[end - 1].start, end).join(""));
    }
    return pieces.reverse();
  }
}
