"use strict";
// The box "Add & Norm" of figure 1 (sections 3.1 and 5.4).

// (x - mean) / sqrt(variance + epsilon) * scale + bias, over the channels of a position.
function layerNormalization(x, scale, bias, epsilon) {
  return x.map((row) => {
    let mean = 0;
    for (const value of row) mean += value;
    mean /= row.length;
    let variance = 0;
    for (const value of row) variance += (value - mean) ** 2;
    const factor = 1 / Math.sqrt(variance / row.length + epsilon);
    return row.map((value, channel) => (value - mean) * factor * scale.data[channel] + bias.data[channel]);
  });
}

// LayerNorm(x + f(x)) as in the paper (post-norm), or x + f(LayerNorm(x)) as in later
// versions of tensor2tensor (pre-norm).
class Residual {
  constructor(model, name) {
    Object.assign(this, { model, name });
    this.scale = model.weights[`${name}/layer_norm/scale`];
    this.bias = model.weights[`${name}/layer_norm/bias`];
  }

  apply(x, sublayer) {
    const { changes, config, note } = this.model;
    const norm = (y) => layerNormalization(y, this.scale, this.bias, config.normEpsilon);
    // Ablation: no residual connection.
    const add = (y) => note(`${this.name}/sum`, changes.residuals.includes(this.name) ? y : addRows(x, y));
    const y = config.norm === "pre" ? add(sublayer(norm(x))) : norm(add(sublayer(x)));
    return note(`${this.name}/output`, y);
  }
}
