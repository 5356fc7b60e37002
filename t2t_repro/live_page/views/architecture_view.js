"use strict";
// Clickable figure 1: each block shows its formula, its shape and its tensor.

// Radians per position of the pair i of channels, as `sinusoidRates` computes them.
const RATES = {
  sinusoid: "ω_i = 10000^(−i/(d_model/2 − 1))",
  sinusoid_halves: "ω_i = 10000^(−2i/d_model)",
  sinusoid_paper: "ω_i = 10000^(−2i/d_model)",
};
const POSITIONS = CONFIG.position in RATES
  ? [`sin(pos·ω_i), cos(pos·ω_i); ${RATES[CONFIG.position]}`, "Sines and cosines of many wavelengths encode the position of each token. Without them, the model could not use word order."]
  : CONFIG.position === "learned"
    ? ["x + P[pos]", "A learned vector for each position is added. Without it, the model could not use word order."]
    : ["x", "This model has no positional encoding."];
const hasWeights = (name) => MODEL.index.some(([each]) => each === name);
const TARGET_SPACE = hasWeights("target_space/table") ? " A learned vector of the target language is added to all positions, as in tensor2tensor." : "";
const EMBEDDING = CONFIG.scaleEmbeddings ? "sqrt(d_model) · E" : "E";
const [ADD_AND_NORM, RESIDUAL, LAST] = CONFIG.norm === "pre"
  ? ["x + Sublayer(LayerNorm(x))", "The input of the sub-layer is normalized at each position to mean 0 and variance 1 before it, and then added to its output.", "LayerNorm(x)"]
  : ["LayerNorm(x + Sublayer(x))", "The input of the sub-layer is added to its output, and each position is normalized to mean 0 and variance 1.", "x"];
const multiHead = (mask) => `Concat(head_1, …, head_h) W^O; head_i = softmax(frac(Q_i K_i^T, sqrt(d_k))${mask}) V_i`;
const FEED_FORWARD = ["max(0, x W_1 + b_1) W_2 + b_2", "A two-layer network is applied to each position separately."];

// [block, title, column, row, formula, description, tensor(layer)]; rows count upwards as in figure 1.
const BLOCKS = [
  ["encoder/embedding", "Input embedding", 0, 0, `${EMBEDDING}[token]`, "Each token becomes a vector: a row of the learned embedding table.", () => "input/embedded"],
  ["encoder/positions", "+ positions", 0, 1, POSITIONS[0], POSITIONS[1] + TARGET_SPACE, () => "input/output"],
  ["encoder/self_attention", "Self-attention", 0, 2, multiHead(""), "Each token attends to all tokens of the source and takes a weighted sum of their values.", (n) => `encoder/layer_${n}/self_attention/output`],
  ["encoder/self_residual", "Add & norm", 0, 3, ADD_AND_NORM, RESIDUAL, (n) => `encoder/layer_${n}/self_attention_residual/output`],
  ["encoder/feed_forward", "Feed forward", 0, 4, ...FEED_FORWARD, (n) => `encoder/layer_${n}/feed_forward/output`],
  ["encoder/feed_residual", "Add & norm", 0, 5, ADD_AND_NORM, `${RESIDUAL} This is the output of the layer.`, (n) => `encoder/layer_${n}/feed_forward_residual/output`],
  ["decoder/embedding", "Output embedding", 1, 0, `${EMBEDDING}[previous token]`, "The translation so far, shifted right by one position. The first input is a vector of zeros.", () => "target/embedded"],
  ["decoder/positions", "+ positions", 1, 1, ...POSITIONS, () => "target/output"],
  ["decoder/self_attention", "Masked self-attention", 1, 2, multiHead(" + mask"), "Each position attends to itself and to the preceding positions only.", (n) => `decoder/layer_${n}/self_attention/output`],
  ["decoder/self_residual", "Add & norm", 1, 3, ADD_AND_NORM, RESIDUAL, (n) => `decoder/layer_${n}/self_attention_residual/output`],
  ["decoder/cross_attention", "Cross-attention", 1, 4, multiHead(""), "Queries come from the translation, keys and values from the encoder output: the decoder attends to the source.", (n) => `decoder/layer_${n}/cross_attention/output`],
  ["decoder/cross_residual", "Add & norm", 1, 5, ADD_AND_NORM, RESIDUAL, (n) => `decoder/layer_${n}/cross_attention_residual/output`],
  ["decoder/feed_forward", "Feed forward", 1, 6, ...FEED_FORWARD, (n) => `decoder/layer_${n}/feed_forward/output`],
  ["decoder/feed_residual", "Add & norm", 1, 7, ADD_AND_NORM, `${RESIDUAL} This is the output of the layer.`, (n) => `decoder/layer_${n}/feed_forward_residual/output`],
  ["decoder/logits", "Linear & softmax", 1, 8, `logits = ${LAST} E^T; probabilities = softmax(logits)`, `The dot product with each row of the ${hasWeights("softmax/table") ? "softmax's own" : "embedding"} table is the logit of a token of the vocabulary. The output below contains the logits; their softmax gives the probabilities.`, () => "logits"],
];

function figure(redraw) {
  const [width, height, step] = [150, 30, 44];
  const place = (column, row) => [column * 180 + 10, 420 - row * step];
  const svg = svgElement("svg", { id: "figure", viewBox: "0 55 350 405", role: "group", "aria-label": "The model's architecture (figure 1)" });
  for (const [column, from, to] of [[0, 2, 5], [1, 2, 7]]) {
    const [x, y] = place(column, to);
    svg.append(svgElement("rect", { class: "stack", x: x - 7, y: y - 7, width: width + 14, height: (to - from) * step + height + 14, rx: 8 }));
  }
  const [fromX, fromY] = place(0, 5);
  const [toX, toY] = place(1, 4);
  svg.append(svgElement("path", { class: "flow", d: `M${fromX + 75} ${fromY} v-14 h87 V${toY + 15} H${toX}` }));
  for (const [block, title, column, row] of BLOCKS) {
    const [x, y] = place(column, row);
    if (row) svg.append(svgElement("path", { class: "flow", d: `M${x + 75} ${y + height} v${step - height}` }));
    const pressed = String(chosen.block === block);
    const button = svgElement("g", { role: "button", tabindex: 0, "aria-pressed": pressed, "aria-label": `${block.split("/")[0]}: ${title}`, id: `block-${block.replace("/", "-")}` },
      svgElement("rect", { x, y, width, height, rx: 5 }), svgElement("text", { x: x + 75, y: y + 20 }, title));
    const choose = () => {
      chosen.block = block;
      redraw(button.id);
    };
    button.addEventListener("click", choose);
    button.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose();
    });
    svg.append(button);
  }
  return svg;
}

async function architectureView(into, redraw) {
  const { sourceNames, names } = found.result;
  if (!names.length) return into.append(paragraph("Type a sentence."));
  const seen = await tensors();
  const [block, title, , , written, told, tensor] = BLOCKS.find(([name]) => name === chosen.block) || BLOCKS[2];
  const side = block.split("/")[0];
  const layers = side === "encoder" ? CONFIG.layers : CONFIG.decoderLayers;
  const layer = Math.min(chosen.layer, layers - 1);
  const rows = seen[tensor(layer)];
  const rowNames = (side === "encoder" ? sourceNames : names).slice(0, MOST_SHOWN);
  const word = Math.min(chosen.word, rowNames.length - 1);
  const chooseNumber = (key) => (value) => {
    chosen[key] = Number(value);
    redraw();
  };
  const opened = element("section", { "aria-live": "polite" },
    element("h3", {}, `${side}: ${title}`),
    formula(written), paragraph(told),
    element("div", { className: "controls" },
      choice("layer", Array.from({ length: layers }, (_, n) => [n, String(n + 1)]), layer, chooseNumber("layer")),
      choice(side === "encoder" ? "token" : "predicted token", rowNames.map((name, at) => [at, `${at + 1}: ${isolated(name)}`]), word, chooseNumber("word"))),
    paragraph(`Output for this sentence: ${rows.length} positions × ${rows[0].length} ${block === "decoder/logits" ? "tokens of the vocabulary" : "channels"}, one row per position.`),
    ...picture(`Output of ${title}`, rows, rowNames));
  const path = BLOCKS.filter(([name]) => name.startsWith(side) && name !== "decoder/logits");
  const values = path.map(([, , , , , , of]) => seen[of(layer)][word]);
  const size = (row) => Math.sqrt(dot(row, 0, row, 0, row.length));
  into.append(
    heading("The architecture"),
    shownNote(),
    element("div", { className: "split" }, figure(redraw), opened),
    heading("Follow a token"),
    paragraph(`The vector ${side === "encoder" ? "of" : "that predicts"} ${quoted(rowNames[word])} in layer ${layer + 1} of the ${side}: one row per block, in the order of computation.`),
    ...picture("The token's vector after each block", values, path.map(([, name]) => name)),
    tableOf("The token's vector after each block", ["after", "norm of the vector", "first channels"], path.map(([, name], at) => [name, number(size(values[at])), Array.from(values[at].slice(0, 4), (value) => number(value, 2)).join("  ")])),
  );
}
