"use strict";
// Scaled dot-product attention and its multi-head form (section 3.2).

const MASKED = -1e9; // Added to the logits of masked keys.

// softmax(Q K^T / sqrt(d_k)) V of one head (equation 1). Head i uses columns i*d to
// (i+1)*d - 1 of the projections. Returns all intermediate results for the views.
function scaledDotProductAttention(query, keys, values, head, dK, dV, scale, isSeen) {
  const products = Float32Array.from(keys, (key) => dot(query, head * dK, key, head * dK, dK));
  const scaled = products.map((value) => value * scale);
  const masked = scaled.map((value, at) => (isSeen(at) ? value : value + MASKED));
  const weights = softmax(masked);
  const output = new Float32Array(dV);
  values.forEach((value, at) => {
    for (let n = 0; n < dV; n++) output[n] += weights[at] * value[head * dV + n];
  });
  return { products, scaled, masked, weights, output };
}

// Concat(head_1, ..., head_h) W_O (section 3.2.2). Marian's projections have biases.
class MultiHeadAttention {
  constructor(model, name) {
    Object.assign(this, { model, name });
    for (const part of ["query", "key", "value", "output"]) {
      const [kernel, bias] = ["kernel", "bias"].map((each) => model.weights[`${name}/${part}/${each}`]);
      this[part] = (x) => product(x, kernel, bias);
    }
  }

  projectQuery(x) {
    return this.model.note(`${this.name}/queries`, this.query(x));
  }

  // Projects the attended positions to keys and values.
  projectMemory(x) {
    const { note } = this.model;
    return {
      keys: note(`${this.name}/keys`, this.key(x)),
      values: note(`${this.name}/values`, this.value(x)),
    };
  }

  // queries: (targets, h * d_k); isSeen(target, source) is the mask.
  attend(queries, memory, isSeen) {
    return this.model.note(`${this.name}/output`, this.output(this.attendInHeads(queries, memory, isSeen)));
  }

  // Returns the outputs of all heads, one after the other: (targets, h * d_v).
  attendInHeads(queries, { keys, values }, isSeen = () => true) {
    const { changes, config, note } = this.model;
    const { heads, dK, dV } = config;
    const scale = changes.unscaled ? 1 : dK ** -0.5;
    const steps = [];
    const joined = makeRows(queries.length, heads * dV);
    for (let head = 0; head < heads; head++) {
      // Ablation: the output of a disabled head is zero.
      const isOff = changes.heads.includes(`${this.name}/${head}`);
      const rows = queries.map((query, target) => {
        const seen = (source) => isSeen(target, source);
        const found = scaledDotProductAttention(query, keys, values, head, dK, dV, scale, seen);
        if (!isOff) joined[target].set(found.output, head * dV);
        return found;
      });
      steps.push(rows);
    }
    note(`${this.name}/steps`, steps);
    return note(`${this.name}/heads`, joined);
  }
}
