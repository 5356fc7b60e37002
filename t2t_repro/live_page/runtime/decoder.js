"use strict";
// The decoder: N layers of masked self-attention, cross-attention and a feed-forward
// network (section 3.1, figure 1, right). It processes a whole translation at once
// (teacher forcing) or one token of each hypothesis (beam search).

class DecoderLayer {
  constructor(model, name) {
    this.model = model;
    this.selfAttention = new MultiHeadAttention(model, `${name}/self_attention`);
    this.selfAttentionResidual = new Residual(model, `${name}/self_attention_residual`);
    this.crossAttention = new MultiHeadAttention(model, `${name}/cross_attention`);
    this.crossAttentionResidual = new Residual(model, `${name}/cross_attention_residual`);
    this.feedForward = new FeedForward(model, `${name}/feed_forward`);
    this.feedForwardResidual = new Residual(model, `${name}/feed_forward_residual`);
  }

  inOrder(x, lookBack, sourceMemory) {
    const cross = this.crossAttention;
    const isSeen = sourceMask(this.model.config, sourceMemory.keys.length);
    const lookAtSource = (y) => cross.attend(cross.projectQuery(y), sourceMemory, isSeen);
    const looked = this.crossAttentionResidual.apply(this.selfAttentionResidual.apply(x, lookBack), lookAtSource);
    return this.feedForwardResidual.apply(looked, (y) => this.feedForward.apply(y));
  }

  // Processes all positions at once, with a causal mask.
  apply(x, sourceMemory) {
    const attention = this.selfAttention;
    // Ablation: no causal mask, so that each position can attend to its own target.
    const isSeen = this.model.changes.noCausalMask ? () => true : (target, source) => source <= target;
    const look = (y) => attention.attend(attention.projectQuery(y), attention.projectMemory(y), isSeen);
    return this.inOrder(x, look, sourceMemory);
  }

  // Processes one position of each hypothesis; `pasts` are the KV caches.
  step(x, pasts, sourceMemory) {
    const attention = this.selfAttention;
    const look = (y) => {
      const { keys, values } = attention.projectMemory(y);
      const joined = attention.projectQuery(y).map((query, hypothesis) => {
        const past = pasts[hypothesis];
        past.keys.push(keys[hypothesis]);
        past.values.push(values[hypothesis]);
        return attention.attendInHeads([query], past)[0];
      });
      return attention.output(joined);
    };
    return this.inOrder(x, look, sourceMemory);
  }
}

class Decoder {
  constructor(model) {
    this.model = model;
    this.embedding = new Embedding(model, "target");
    const names = Array.from({ length: model.config.decoderLayers }, (_, n) => `decoder/layer_${n}`);
    this.layers = names.map((name) => new DecoderLayer(model, name));
    const [table, bias] = ["table", "bias"].map((part) => model.weights[`softmax/${part}`] || model.weights[`embedding/${part}`]);
    Object.assign(this, { table, bias });
  }

  // Keys and values of the encoder output, computed once for all steps and hypotheses.
  memories(encoderOutput) {
    return this.layers.map((layer) => layer.crossAttention.projectMemory(encoderOutput));
  }

  // Teacher forcing: position t reads token t - 1 and predicts token t.
  // ids (target,) and (source, d_model) -> logits (target, V)
  apply(ids, encoderOutput) {
    const memories = this.memories(encoderOutput);
    const shifted = [PAD, ...ids.slice(0, -1)];
    let x = this.embedding.apply(shifted);
    this.layers.forEach((layer, n) => (x = layer.apply(x, memories[n])));
    return this.logits(x);
  }

  logits(x) {
    const { note } = this.model;
    const output = note("decoder/output", finish(this.model, "decoder", x));
    return note("logits", productWithTable(output, this.table, this.bias));
  }

  // Returns the state of one empty hypothesis.
  start(encoderOutput) {
    return { memories: this.memories(encoderOutput), pasts: [this.layers.map(() => ({ keys: [], values: [] }))] };
  }

  // Processes the last token of each hypothesis: ids (hypotheses,) -> logits (hypotheses, V).
  step(ids, position, { memories, pasts }) {
    let x = ids.flatMap((id) => this.embedding.apply([id], position));
    this.layers.forEach((layer, n) => (x = layer.step(x, pasts.map((past) => past[n]), memories[n])));
    return this.logits(x);
  }

  // Copies the KV cache of parents[k] to hypothesis k.
  selectBeams(state, parents) {
    const copy = (past) => past.map(({ keys, values }) => ({ keys: [...keys], values: [...values] }));
    return { ...state, pasts: parents.map((parent) => copy(state.pasts[parent])) };
  }
}
