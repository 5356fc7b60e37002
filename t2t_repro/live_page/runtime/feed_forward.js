"use strict";
// The feed-forward network (section 3.3).

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

// Computes the error function: 2 x exp(-x^2) / sqrt(pi) * sum of (2 x^2)^n / (2n + 1)!!.
function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let term = 1;
  let sum = 1;
  for (let odd = 3; term > 1e-16 * sum; odd += 2) sum += term *= (2 * x * x) / odd;
  return (2 * x * Math.exp(-x * x) * sum) / Math.sqrt(Math.PI);
}

const ACTIVATIONS = {
  relu: (x) => Math.max(0, x),
  swish: (x) => x * sigmoid(x),
  gelu: (x) => (x * (1 + erf(x / Math.SQRT2))) / 2,
  gelu_sigmoid: (x) => x * sigmoid(1.702 * x),
};

// f(x W1 + b1) W2 + b2, applied to each position separately; f is max(0, x) in equation 2.

class FeedForward {
  constructor(model, name) {
    Object.assign(this, { model, name });
    const of = (part) => model.weights[`${name}/${part}`];
    [this.w1, this.b1, this.w2, this.b2] = ["hidden/kernel", "hidden/bias", "output/kernel", "output/bias"].map(of);
  }

  apply(x) {
    const { config, note } = this.model;
    const activate = ACTIVATIONS[config.activation];
    const hidden = product(x, this.w1, this.b1).map((row) => row.map((value) => activate(value)));
    note(`${this.name}/hidden`, hidden);
    return note(`${this.name}/output`, product(hidden, this.w2, this.b2));
  }
}
