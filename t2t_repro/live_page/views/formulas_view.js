"use strict";
// Formulas of the paper: positions, scaling, path length, learning rate, normalization.

function positionsPart() {
  const count = 50;
  const signal = (at) => sinusoid(at, CONFIG.dModel, CONFIG.position);
  const rows = Array.from({ length: count }, (_, at) => signal(at));
  // PE(pos + k) is a rotation of PE(pos), so dot products depend only on the distance k.
  const likeness = [0, 10, 25].map((at) => rows.map((row) => dot(row, 0, rows[at], 0, row.length)));
  return [
    heading("Positions"),
    paragraph("Each row is a position, each column a channel, with wavelengths from short to very long. The encoding of position pos + k is the encoding of pos with each pair of channels rotated by an angle that depends only on k. Therefore the dot product of two encodings depends only on their distance."),
    ...picture("Positional encoding", rows, rows.map((_, at) => String(at))),
    lines("Dot product of a position with each other position", likeness, ["position 0", "position 10", "position 25"]),
    folded("Numbers as a table", () => tableOf("Dot products of positions", ["position", "with 0", "with 10", "with 25"], rows.map((_, at) => [String(at), ...likeness.map((values) => number(values[at]))]))),
  ];
}

function otherPositions() {
  const told = CONFIG.position === "learned"
    ? "This model has learned positional embeddings instead of sinusoids, so there is no rotation to show."
    : "This model has no positional encoding, so there are no sinusoids to show.";
  return [heading("Positions"), paragraph(told)];
}

function scalingPart() {
  // Dot products of random vectors have variance d_k: the softmax saturates as d_k grows.
  const normal = [0.6, -1.1, 0.2, 1.4, -0.3, 0.9, -0.7, 0.1];
  const table = element("div", {});
  const draw = (exponent) => {
    const d = 2 ** exponent;
    const hard = softmax(normal.map((value) => value * Math.sqrt(d)));
    const soft = softmax(normal);
    table.replaceChildren(tableOf(`d_k = ${d}`, ["key", "product", "softmax of product", "scaled", "softmax of scaled"], normal.map((value, at) => [String(at + 1), number(value * Math.sqrt(d), 2), percent(hard[at]), number(value, 2), percent(soft[at])])));
  };
  draw(6);
  return [
    heading("Why dot products are scaled"),
    paragraph("The dot product of two vectors of d_k independent numbers with mean 0 and variance 1 has variance d_k. Without the division by √d_k, the softmax would assign nearly all weight to one key, where its gradient vanishes (section 3.2.1)."),
    element("div", { className: "controls" }, slider("log₂ d_k", { min: 0, max: 10, step: 1, value: 6 }, draw)),
    table,
  ];
}

function pathsPart() {
  const table = element("div", {});
  const draw = (n) => table.replaceChildren(tableOf(`Layers for ${n} words`, ["layer", "maximum path length", "sequential operations", "complexity"], [
    ["self-attention", "1", "1", `n²·d = ${n ** 2}·d`],
    ["recurrent", String(n), String(n), `n·d² = ${n}·d²`],
    ["convolutional, dilated, k = 3", String(Math.max(1, Math.ceil(Math.log(n) / Math.log(3)))), "1", `k·n·d² = ${3 * n}·d²`],
  ]));
  draw(25);
  return [heading("Path length"), paragraph("Table 1 of the paper: attention connects any two words in one operation."), element("div", { className: "controls" }, slider("n, words", { min: 2, max: 200, step: 1, value: 25 }, draw)), table];
}

function schedulePart() {
  const now = { d: CONFIG.dModel, warmup: CONFIG.warmupSteps };
  const shown = element("div", {});
  const rate = (step) => now.d ** -0.5 * Math.min(step ** -0.5, step * now.warmup ** -1.5);
  const draw = () => {
    const steps = Array.from({ length: 100 }, (_, at) => (at + 1) * now.warmup * 0.05);
    shown.replaceChildren(lines("Learning rate by step", [steps.map(rate)], [`maximum ${rate(now.warmup).toExponential(2)} at step ${now.warmup}`]),
      folded("Numbers as a table", () => tableOf("Learning rate", ["step", "rate"], steps.map((step) => [String(Math.round(step)), rate(step).toExponential(3)]))));
  };
  draw();
  const change = (key) => (value) => {
    now[key] = value;
    draw();
  };
  return [
    heading("The learning rate"),
    formula("lrate = d_model^(−0.5) · min(step^(−0.5), step · warmup^(−1.5))"),
    element("div", { className: "controls" },
      slider("d_model", { min: 64, max: 1024, step: 64, value: now.d }, change("d")),
      slider("warm-up steps", { min: 100, max: 8000, step: 100, value: now.warmup }, change("warmup"))),
    shown,
  ];
}

async function normsPart() {
  if (!found.result.ids.length) return [];
  const rows = (await tensors())["encoder/layer_0/self_attention_residual/sum"];
  const told = (values) => {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    return [number(mean), number(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length)];
  };
  const channels = [0, 1, 2, 3].map((channel) => rows.map((row) => row[channel]));
  return [
    heading("Layer and batch normalization"),
    paragraph("The numbers are those of your sentence after the first residual connection of the encoder. Layer normalization computes mean and variance of each position over its channels, so sentences do not affect each other. Batch normalization computes them for each channel over all positions of a batch, so a translation would depend on the other sentences of its batch."),
    tableOf("Layer normalization: statistics of each position", ["position", "mean", "variance"], rows.map((row, at) => [found.result.sourceNames[at], ...told(Array.from(row))])),
    tableOf("Batch normalization: statistics of each channel (the first four)", ["channel", "mean", "variance"], channels.map((values, at) => [String(at), ...told(values)])),
  ];
}

async function formulasView(into) {
  const norms = await normsPart();
  const positions = CONFIG.position.startsWith("sinusoid") ? [...positionsPart(), ...rotationPart()] : otherPositions();
  into.append(...positions, ...scalingPart(), ...pathsPart(), ...schedulePart(), ...norms);
}
