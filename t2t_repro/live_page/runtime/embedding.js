"use strict";
// Embeddings (section 3.4) and positions (section 3.5).

const PAD = 0;
const EOS = 1;
const MAX_TIMESCALE = 10000;

// Radians per position of each pair of channels. tensor2tensor's last timescale is
// exactly 10,000; in the paper's formula it is slightly less.
function sinusoidRates(channels, formula) {
  const count = Math.floor(channels / 2);
  const exponent = (n) => (formula === "sinusoid" ? n / Math.max(count - 1, 1) : (2 * n) / channels);
  return Float32Array.from({ length: count }, (_, n) => MAX_TIMESCALE ** -exponent(n));
}

// In tensor2tensor and Transformers all sines precede all cosines; in the paper they alternate.
function sinusoid(position, channels, formula) {
  const signal = new Float32Array(channels);
  const rates = sinusoidRates(channels, formula);
  rates.forEach((rate, n) => {
    const angle = Math.fround(position * rate); // Rounds to float32 as in Python.
    const [sine, cosine] = formula === "sinusoid_paper" ? [2 * n, 2 * n + 1] : [n, rates.length + n];
    signal[sine] = Math.sin(angle);
    signal[cosine] = Math.cos(angle);
  });
  return signal;
}

// Embeds tokens: the row of the table times sqrt(d_model), plus the positional encoding.
class Embedding {
  constructor(model, side) {
    Object.assign(this, { model, side });
    const names = ["embedding/table", `${side}_embedding/table`, "softmax/table"];
    this.table = names.map((name) => model.weights[name]).find((table) => table);
    this.learned = model.weights[`${side}_position/table`];
    this.signals = [];
  }

  // PAD, the first decoder input, is embedded as the start symbol or as a vector of zeros.
  apply(ids, firstPosition = 0) {
    const { changes, config, note } = this.model;
    const factor = Math.fround(config.scaleEmbeddings ? Math.sqrt(config.dModel) : 1);
    const space = this.side === "input" && this.model.weights["target_space/table"];
    const embedded = ids.map((id) => {
      const read = id === PAD && this.side === "target" ? config.startSymbol : id;
      if (read === PAD) return new Float32Array(config.dModel);
      return this.row(this.table, read).map((value) => value * factor);
    });
    note(`${this.side}/embedded`, embedded);
    const spaced = space ? addRows(embedded, ids.map(() => this.row(space, config.targetSpace))) : embedded;
    // Ablation: no positional encoding.
    const signals = ids.map((_, at) => this.signal(changes.noPositions ? null : firstPosition + at));
    note(`${this.side}/positions`, signals);
    return note(`${this.side}/output`, addRows(spaced, signals));
  }

  row(table, at) {
    const width = table.shape[1];
    return table.data.subarray(at * width, (at + 1) * width);
  }

  signal(position) {
    const { dModel, position: formula } = this.model.config;
    if (position === null || formula === "none") return new Float32Array(dModel);
    if (formula === "learned") {
      const isInside = position < this.learned.shape[0];
      return isInside ? this.row(this.learned, position) : new Float32Array(dModel);
    }
    return (this.signals[position] ||= sinusoid(position, dModel, formula));
  }
}
