"use strict";
// Translates text with the tokenizer, the model and beam search.

const MOST_CHARACTERS = 65536; // Longer texts are truncated.
const MOST_SUBWORDS = 512; // Maximum number of source tokens, including EOS.
// Matches texts that Python's str.strip reduces to an empty string.
const BLANK = /^[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*$/;

class Translator {
  constructor(model, tokenizer) {
    Object.assign(this, { model, tokenizer });
    this.searchClass = SEARCHES[model.config.search];
  }

  // Returns the ids of a text, with EOS at the end, and the number of subwords that were
  // not read, to which each character after the first MOST_CHARACTERS counts as one.
  // side: "source" or "target", whose vocabularies may differ.
  read(text, side = "source") {
    const characters = [...text.toWellFormed()];
    const ids = this.tokenizer[side].encode(characters.slice(0, MOST_CHARACTERS).join(""));
    const unread = Math.max(0, characters.length - MOST_CHARACTERS) + Math.max(0, ids.length + 1 - MOST_SUBWORDS);
    return { ids: [...ids.slice(0, MOST_SUBWORDS - 1), EOS], unread };
  }

  // Reads the source; a blank text has no tokens but EOS.
  readSource(text) {
    return BLANK.test(text) ? { ids: [EOS], unread: 0 } : this.read(text);
  }

  // Replaces line breaks in the output, so that a translation is a single line.
  decode(ids) {
    return this.tokenizer.decode(ids).replace(/[\r\n]/g, " ");
  }

  // Returns the maximum number of tokens of the translation of `length` tokens, EOS
  // included in both.
  longest(length) {
    const { lengthFactor, extraLength } = this.model.config;
    return Math.ceil(Math.fround(length * Math.fround(lengthFactor))) + extraLength; // In float32 as in Python.
  }

  // options: beamSize, alpha, prefix (ids), changes (see NO_CHANGES).
  translate(text, options = {}) {
    const { ids: source, unread } = this.readSource(text);
    if (source.length === 1) return { translation: "", score: 0, tokens: 0, unread, source: [], ids: [], results: [], steps: [] };
    const { allowUnknown } = this.model.config;
    const never = allowUnknown ? [] : [this.tokenizer.target.unknown];
    const search = new this.searchClass({ ...this.model.config, never, ...options });
    const found = this.model.withChanges(options.changes, () =>
      search.search(this.model.decoder, this.model.encoderOutput(source), this.longest(source.length), options.prefix));
    const [best] = found.results;
    if (!best) return { translation: "", score: -Infinity, tokens: 0, unread, source, ids: [], ...found };
    return { translation: this.decode(best.ids), score: best.score, tokens: best.ids.length, unread, source, ids: best.ids, ...found };
  }
}
