"use strict";
// The encoder: N layers of self-attention and a feed-forward network (section 3.1,
// figure 1, left).

class EncoderLayer {
  constructor(model, name) {
    this.selfAttention = new MultiHeadAttention(model, `${name}/self_attention`);
    this.selfAttentionResidual = new Residual(model, `${name}/self_attention_residual`);
    this.feedForward = new FeedForward(model, `${name}/feed_forward`);
    this.feedForwardResidual = new Residual(model, `${name}/feed_forward_residual`);
  }

  apply(x, isSeen) {
    const attention = this.selfAttention;
    const look = (y) => attention.attend(attention.projectQuery(y), attention.projectMemory(y), isSeen);
    return this.feedForwardResidual.apply(
      this.selfAttentionResidual.apply(x, look),
      (y) => this.feedForward.apply(y),
    );
  }
}

// Returns the mask of the source. Models may hide EOS from other tokens.
function sourceMask({ sourceEnd }, length) {
  return (target, source) => sourceEnd || source < length - 1 || length === 1;
}

// Pre-norm models normalize the output of the last layer.
function finish(model, side, x) {
  const scale = model.weights[`${side}/final_norm/scale`];
  const bias = model.weights[`${side}/final_norm/bias`];
  return scale ? layerNormalization(x, scale, bias, model.config.normEpsilon) : x;
}

class Encoder {
  constructor(model) {
    this.model = model;
    this.embedding = new Embedding(model, "input");
    this.layers = Array.from({ length: model.config.layers }, (_, n) => new EncoderLayer(model, `encoder/layer_${n}`));
  }

  // ids (source,), which end in EOS -> (source, d_model)
  apply(ids) {
    const isSeen = sourceMask(this.model.config, ids.length);
    const x = this.layers.reduce((y, layer) => layer.apply(y, isSeen), this.embedding.apply(ids));
    return this.model.note("encoder/output", finish(this.model, "encoder", x));
  }
}
