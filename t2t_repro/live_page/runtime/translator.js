"use strict";
// Translates text with the tokenizer, the model and beam search.

const MOST_CHARACTERS = 65536; // Longer texts are truncated.
const MOST_SUBWORDS = 512; // Maximum number of source tokens, including EOS.
// Matches texts that Python's str.strip reduces to an empty string.
const BLANK = /^[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*$/;

class Translator {
  constructor(model, tokenizer) {
    Object.assign(this, { model, tokenizer });
  }

  // Returns the ids of a text, with EOS at the end, and the number of subwords that were
  // not read, to which each character after the first MOST_CHARACTERS counts as one.
  read(text) {
    const characters = [...text.toWellFormed()];
    const ids = this.tokenizer.encode(characters.slice(0, MOST_CHARACTERS).join(""));
    const unread = Math.max(0, characters.length - MOST_CHARACTERS) + Math.max(0, ids.length + 1 - MOST_SUBWORDS);
    return { ids: [...ids.slice(0, MOST_SUBWORDS - 1), EOS], unread };
  }

  // Replaces line breaks in the output, so that a translation is a single line.
  decode(ids) {
    return this.tokenizer.decode(ids).replace(/[\r\n]/g, " ");
  }

  // options: beamSize, alpha, prefix (ids), changes (see NO_CHANGES).
  translate(text, options = {}) {
    if (BLANK.test(text)) return { translation: "", score: 0, tokens: 0, unread: 0, source: [], ids: [], results: [], steps: [] };
    const { ids: source, unread } = this.read(text);
    const limit = source.length + this.model.config.extraLength;
    const search = { beamSize: this.model.config.beamSize, alpha: this.model.config.alpha, limit, ...options };
    const found = this.model.withChanges(options.changes, () =>
      beamSearch(this.model.decoder, this.model.encoder.apply(source), search));
    const [best] = found.results;
    if (!best) return { translation: "", score: -Infinity, tokens: 0, unread, source, ids: [], ...found };
    return { translation: this.decode(best.ids), score: best.score, tokens: best.ids.length, unread, source, ids: best.ids, ...found };
  }
}
