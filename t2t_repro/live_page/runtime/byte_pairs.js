"use strict";
// Byte-pair encoding (section 5.1) in SentencePiece's order.

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

class BytePairs {
  constructor(pieces) {
    this.pieces = pieces;
    this.ids = idsOfKinds(pieces, NORMAL, UNUSED);
  }

  // Repeatedly merges the adjacent pair with the best score, and the leftmost of equal
  // ones, until no adjacent pair forms a piece. Returns the pieces of a normalized text.
  split(text) {
    const symbols = [...text].map((piece, at) => ({ piece, before: at - 1, after: at + 1 }));
    const queue = new Heap((a, b) => a.score > b.score || (a.score === b.score && a.left < b.left));
    const madeOf = new Map(); // The parts of unused pieces, which are split again at the end.
    const offer = (left, right) => {
      if (left < 0 || right >= symbols.length) return;
      const piece = symbols[left].piece + symbols[right].piece;
      const id = this.ids.get(piece);
      if (id === undefined) return;
      const [, score, kind] = this.pieces[id];
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
    const undo = (piece) => (madeOf.has(piece) ? madeOf.get(piece).flatMap(undo) : [piece]);
    return symbols.filter(({ piece }) => piece).flatMap(({ piece }) => undo(piece));
  }
}
