"use strict";
// max(0, x W1 + b1) W2 + b2, applied to each position separately (equation 2).

class FeedForward {
  constructor(model, name) {
    Object.assign(this, { model, name });
    const of = (part) => model.weights[`${name}/${part}`];
    [this.w1, this.b1, this.w2, this.b2] = ["hidden/kernel", "hidden/bias", "output/kernel", "output/bias"].map(of);
  }

  apply(x) {
    const { note } = this.model;
    const hidden = product(x, this.w1, this.b1).map((row) => row.map((value) => Math.max(0, value)));
    note(`${this.name}/hidden`, hidden);
    return note(`${this.name}/output`, product(hidden, this.w2, this.b2));
  }
}
