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

  // Returns the ids of a text, with EOS at the end.
  encode(text) {
    const read = [...text.toWellFormed()].slice(0, MOST_CHARACTERS).join("");
    return [...this.tokenizer.encode(read).slice(0, MOST_SUBWORDS - 1), EOS];
  }

  // Replaces line breaks in the output, so that a translation is a single line.
  decode(ids) {
    return this.tokenizer.decode(ids).replace(/[\r\n]/g, " ");
  }

  // options: beamSize, alpha, prefix (ids), changes (see NO_CHANGES).
  translate(text, options = {}) {
    if (BLANK.test(text)) return { translation: "", score: 0, tokens: 0, source: [], ids: [], results: [], steps: [] };
    const source = this.encode(text);
    const limit = source.length + this.model.config.extraLength;
    const search = { beamSize: this.model.config.beamSize, alpha: this.model.config.alpha, limit, ...options };
    const found = this.model.withChanges(options.changes, () =>
      beamSearch(this.model.decoder, this.model.encoder.apply(source), search));
    const [best] = found.results;
    if (!best) return { translation: "", score: -Infinity, tokens: 0, source, ids: [], ...found };
    return { translation: this.decode(best.ids), score: best.score, tokens: best.ids.length, source, ids: best.ids, ...found };
  }
}
