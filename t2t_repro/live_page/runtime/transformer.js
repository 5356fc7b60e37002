"use strict";
// The model (figure 1).

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

  // Calls `compute` with some parts of the model disabled (see NO_CHANGES).
  withChanges(changes, compute) {
    this.changes = { ...NO_CHANGES, ...changes };
    try {
      return compute();
    } finally {
      this.changes = NO_CHANGES;
    }
  }

  // Returns the logits (target, V) of teacher forcing; source and target ids end in EOS.
  logits(source, target) {
    return this.decoder.apply(target, this.encoder.apply(source));
  }

  // Returns all intermediate tensors of teacher forcing by name.
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
