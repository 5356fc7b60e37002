"use strict";
// The model (figure 1): weights, encoder, decoder.

const NO_CHANGES = { heads: [], residuals: [], unscaled: false, noPositions: false, noCausalMask: false };

class Transformer {
  // config: sizes and options; weights: from `readWeights`.
  constructor(config, weights) {
    this.config = config;
    this.weights = weights;
    this.changes = NO_CHANGES;
    this.note = (name, value) => value;
    this.encoder = new Encoder(this);
    this.decoder = new Decoder(this);
  }

  // Computes with some of the paper's parts switched off (see NO_CHANGES).
  withChanges(changes, compute) {
    this.changes = { ...NO_CHANGES, ...changes };
    try {
      return compute();
    } finally {
      this.changes = NO_CHANGES;
    }
  }

  // Teacher forcing: logits (target, V) of ids that end in EOS.
  logits(source, target) {
    return this.decoder.apply(target, this.encoder.apply(source));
  }

  // The same, and every tensor on the way, by name.
  inspect(source, target) {
    const seen = {};
    this.note = (name, value) => (seen[name] = value);
    try {
      this.logits(source, target);
    } finally {
      this.note = (name, value) => value;
    }
    return seen;
  }
}
