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

  // Returns {output, tensors} of `compute`: its result and all intermediate tensors by name.
  observe(compute) {
    const tensors = {};
    this.note = (name, value) => (tensors[name] = value);
    try {
      return { output: compute(), tensors };
    } finally {
      this.note = (name, value) => value;
    }
  }

  // Observes the encoder. The last result is kept, because the search reads the same sentence.
  encode(source) {
    const key = this.keyOf(source);
    if (this.encoded?.key !== key) this.encoded = { key, ...this.observe(() => this.encoder.apply(source)) };
    return this.encoded;
  }

  keyOf(source) {
    return JSON.stringify([source, this.changes]);
  }

  // Returns the output of the encoder without its tensors, which would need much memory for a long text.
  encoderOutput(source) {
    return this.encoded?.key === this.keyOf(source) ? this.encoded.output : this.encoder.apply(source);
  }

  // Returns the logits (target, V) of teacher forcing; source and target ids end in EOS.
  logits(source, target) {
    return this.decoder.apply(target, this.encoderOutput(source));
  }

  // Returns the intermediate tensors of the decoder in teacher forcing by name.
  inspectDecoder(source, target) {
    const output = this.encoderOutput(source);
    return this.observe(() => this.decoder.apply(target, output)).tensors;
  }
}
