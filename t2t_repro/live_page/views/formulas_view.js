"use strict";
// Formulas of the paper: positions, scaling, path length, learning rate, normalization.

function positionsPart() {
  const count = 50;
  const signal = (at) => sinusoid(at, CONFIG.dModel, CONFIG.position);
  const rows = Array.from({ length: count }, (_, at) => signal(at));
  // PE(pos + k) is a rotation of PE(pos), so dot products depend only on the distance k.
  const likeness = [0, 10, 25].map((at) => ({ name: `with ${at}`, values: rows.map((row) => dot(row, 0, rows[at], 0, row.length)) }));
  const numbers = rows.map((_, at) => at);
  return [
    heading("Positions"),
    paragraph("The encoding of position pos + k is the encoding of pos with each pair of channels rotated by an angle that depends only on k. Therefore the dot product of two encodings depends only on their distance."),
    matrix("Positional encoding", rows, { rowNames: numbers.map(String), rowTitle: "position", most: 1, look: "Each row is a position, each column a channel. Follow a column downwards: some channels change sign every few positions, others hardly change at all." }),
    curves("Dot product of each position with three positions", numbers, likeness, { xTitle: "position", yTitle: "dot product", look: "The three curves have the same shape around their positions, because only the distance counts." }),
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
  const shown = element("div", {});
  const draw = (exponent) => {
    const d = 2 ** exponent;
    const products = normal.map((value) => value * Math.sqrt(d));
    const [hard, soft] = [softmax(products), softmax(normal)];
    const most = Math.max(...hard);
    shown.replaceChildren(bars(`Softmax of eight dot products, d_k = ${d}`, products.map((value, at) => `key ${at + 1}: ${number(value, 2)}`),
      [{ name: "not scaled", values: hard }, { name: "scaled", values: soft }], { title: "dot product", most: 1, look: `Without scaling, one key receives ${percent(most)}; with scaling, it receives ${percent(Math.max(...soft))}.` }));
  };
  draw(6);
  return [
    heading("Why dot products are scaled"),
    paragraph("The dot product of two vectors of d_k independent numbers with mean 0 and variance 1 has variance d_k. Without the division by √d_k, the softmax would assign nearly all weight to one key, where its gradient vanishes (section 3.2.1). The eight products are examples with this variance."),
    element("div", { className: "controls" }, slider("log₂ d_k", { min: 0, max: 10, step: 1, value: 6 }, draw)),
    shown,
  ];
}

// Returns the positions that information visits from the first to the last of n words, one hop per layer.
function dilatedHops(n, k) {
  const places = [0];
  for (let left = n - 1, width = 1; left > 0; left = Math.floor(left / k), width *= k) places.push(places.at(-1) + (left % k) * width);
  return places;
}

function pathsPart() {
  const shown = element("div", {});
  const draw = (n) => {
    const layers = [
      ["self-attention", "O(1)", "O(1)", `n²·d = ${n ** 2}·d`, [0, n - 1]],
      ["recurrent", "O(n)", "O(n)", `n·d² = ${n}·d²`, Array.from({ length: n }, (_, at) => at)],
      ["dilated convolution, k = 3", "O(log_k n)", "O(1)", `k·n·d² = ${3 * n}·d²`, dilatedHops(n, 3)],
    ];
    const counted = layers.map(([name, , , , places]) => `${places.length - 1} (${name})`).join(", ");
    shown.replaceChildren(
      framed(`From the first to the last of ${n} words`, `Each arc is one operation: ${counted}. A loop is a layer that passes its input on at the same word. A signal, and in training its gradient, has to pass through all of them.`, ...layers.map(([name, , , , places]) => hops(name, n, places))),
      tableOf("Table 1 of the paper", ["layer", "arcs", "maximum path length", "sequential operations", "complexity per layer"], layers.map(([name, path, steps, cost, places]) => [name, String(places.length - 1), path, steps, cost])));
  };
  draw(12);
  return [heading("Path length"), paragraph("How many operations connect two words decides how easily a layer learns that they belong together (section 4)."), element("div", { className: "controls" }, slider("n, words", { min: 2, max: 60, step: 1, value: 12 }, draw)), shown];
}

// Equation 3, as `paper_rate` in t2t_repro/training/schedules.py.
const paperRate = (step, dModel, warmup) => dModel ** -0.5 * Math.min(step ** -0.5, step * warmup ** -1.5);

function schedulePart() {
  const now = { d: CONFIG.dModel, warmup: CONFIG.warmupSteps };
  const shown = element("div", {});
  const rate = (step) => paperRate(step, now.d, now.warmup);
  const draw = () => {
    const steps = Array.from({ length: 100 }, (_, at) => Math.round((at + 1) * now.warmup * 0.05));
    shown.replaceChildren(curves("Learning rate", steps, [{ name: "learning rate", values: steps.map(rate) }], { xTitle: "training step", yTitle: "learning rate", look: `It rises to ${rate(now.warmup).toPrecision(3)} at step ${now.warmup}, the end of the warm-up, and then falls with the square root of the step.` }));
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
