"use strict";
// Figure 1 with clickable blocks: each block shows its formula, its shape and its tensor.

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
const HAS_BIAS = hasWeights("softmax/bias") || hasWeights("embedding/bias");
const FIRST_INPUT = CONFIG.startSymbol === PAD ? "The first input is a vector of zeros." : "The first input is the start token of the model.";
const ACTIVATION = { relu: "max(0, x W_1 + b_1)", swish: "swish(x W_1 + b_1)" }[CONFIG.activation] || "GELU(x W_1 + b_1)";
const FEED_FORWARD = [`${ACTIVATION} W_2 + b_2`, "A two-layer network is applied to each position separately."];

// [block, title, column, row, formula, description, tensor(layer)]; rows count upwards as in figure 1.
const BLOCKS = [
  ["encoder/embedding", "Input embedding", 0, 0, `${EMBEDDING}[token]`, "Each token becomes a vector: a row of the learned embedding table.", () => "input/embedded"],
  ["encoder/positions", "+ positions", 0, 1, POSITIONS[0], POSITIONS[1] + TARGET_SPACE, () => "input/output"],
  ["encoder/self_attention", "Self-attention", 0, 2, multiHead(""), "Each token attends to all tokens of the source and takes a weighted sum of their values.", (n) => `encoder/layer_${n}/self_attention/output`],
  ["encoder/self_residual", "Add & norm", 0, 3, ADD_AND_NORM, RESIDUAL, (n) => `encoder/layer_${n}/self_attention_residual/output`],
  ["encoder/feed_forward", "Feed forward", 0, 4, ...FEED_FORWARD, (n) => `encoder/layer_${n}/feed_forward/output`],
  ["encoder/feed_residual", "Add & norm", 0, 5, ADD_AND_NORM, `${RESIDUAL} This is the output of the layer.`, (n) => `encoder/layer_${n}/feed_forward_residual/output`],
  ["decoder/embedding", "Output embedding", 1, 0, `${EMBEDDING}[previous token]`, "The translation so far, shifted right by one position. " + FIRST_INPUT, () => "target/embedded"],
  ["decoder/positions", "+ positions", 1, 1, ...POSITIONS, () => "target/output"],
  ["decoder/self_attention", "Masked self-attention", 1, 2, multiHead(" + mask"), "Each position attends to itself and to the preceding positions only.", (n) => `decoder/layer_${n}/self_attention/output`],
  ["decoder/self_residual", "Add & norm", 1, 3, ADD_AND_NORM, RESIDUAL, (n) => `decoder/layer_${n}/self_attention_residual/output`],
  ["decoder/cross_attention", "Cross-attention", 1, 4, multiHead(""), "Queries come from the translation, keys and values from the encoder output: the decoder attends to the source.", (n) => `decoder/layer_${n}/cross_attention/output`],
  ["decoder/cross_residual", "Add & norm", 1, 5, ADD_AND_NORM, RESIDUAL, (n) => `decoder/layer_${n}/cross_attention_residual/output`],
  ["decoder/feed_forward", "Feed forward", 1, 6, ...FEED_FORWARD, (n) => `decoder/layer_${n}/feed_forward/output`],
  ["decoder/feed_residual", "Add & norm", 1, 7, ADD_AND_NORM, `${RESIDUAL} This is the output of the layer.`, (n) => `decoder/layer_${n}/feed_forward_residual/output`],
  ["decoder/logits", "Linear", 1, 8, `logits = ${LAST} E^T${HAS_BIAS ? " + b" : ""}`, `The dot product with each row of the ${hasWeights("softmax/table") ? "softmax's own" : "embedding"} table${HAS_BIAS ? ", plus a bias," : ""} is the logit of a token of the vocabulary.`, () => "logits"],
  ["decoder/softmax", "Softmax", 1, 9, "p_i = frac(exp(logit_i), exp(logit_1) + … + exp(logit_V))", "The softmax divides the exponential of each logit by the sum of all exponentials, which gives a probability to each token of the vocabulary.", () => "logits"],
];

// Returns the indices of the most likely tokens and their texts.
async function likelyTokens(logits, count) {
  const ids = topK(logits, count);
  const texts = await ask("decodeEach", ids);
  return ids.map((id, at) => [id, id === EOS ? "(end)" : texts[at] || `token ${id}`]);
}

async function blockPicture(block, title, rows, rowNames, word) {
  const options = { rowNames, rowTitle: "word", width: 430, look: `One row per word: ${rows.length} × ${rows[0].length} numbers.`, chosen: word };
  if (block !== "decoder/logits" && block !== "decoder/softmax") return matrix(`Output of ${title}`, rows, options);
  const likely = await likelyTokens(rows[word], 10);
  const texts = likely.map(([, text]) => text);
  if (block === "decoder/softmax") {
    const values = softmax(rows[word]);
    return bars(`Probability of the word at position ${word + 1}`, texts, [{ name: "probability", values: likely.map(([id]) => values[id]) }], { title: "token", most: 1, look: `The ten most likely of ${rows[0].length} tokens.` });
  }
  return matrix("Logits", rows.map((row) => likely.map(([id]) => row[id])), { ...options, columnNames: texts, columnTitle: "token", look: `The logits of the ten tokens that are most likely at position ${word + 1}, of ${rows[0].length} tokens.` });
}

async function architectureView(into, redraw) {
  const { sourceNames, names } = found.result;
  if (!names.length) return into.append(paragraph("Type a sentence."));
  const seen = await tensors();
  const [block, title, , , written, told, tensor] = BLOCKS.find(([name]) => name === chosen.block) || BLOCKS[2];
  const side = block.split("/")[0];
  const layers = side === "encoder" ? CONFIG.layers : CONFIG.decoderLayers;
  const layer = Math.min(chosen.layer, layers - 1);
  const rowNames = (side === "encoder" ? sourceNames : names).slice(0, MOST_SHOWN);
  const word = Math.min(chosen.word, rowNames.length - 1);
  const chooseNumber = (key) => (value) => {
    chosen[key] = Number(value);
    redraw();
  };
  const path = BLOCKS.filter(([name]) => name.startsWith(side) && name !== "decoder/logits" && name !== "decoder/softmax");
  const values = path.map(([, , , , , , of]) => seen[of(layer)][word]);
  const sizes = values.map(sizeOf);
  const cosine = (a, b) => number(dot(values[a], 0, values[b], 0, values[a].length) / (sizes[a] * sizes[b] || 1), 2);
  const tellAt = (at) => `${path[at][1]} of layer ${layer + 1}: the vector has norm ${number(sizes[at], 2)}${at ? `, and its cosine with the vector before is ${cosine(at, at - 1)}` : ""}.`;
  const drawn = figureOne(redraw);
  const opened = element("section", {},
    element("div", { "aria-live": "polite" }, element("h3", {}, `${side}: ${title}`), formula(written), paragraph(told)),
    element("div", { className: "controls" },
      choice("layer", numbered(layers), layer, chooseNumber("layer")),
      choice(side === "encoder" ? "token" : "predicted token", rowNames.map((name, at) => [at, `${at + 1}: ${isolated(name)}`]), word, chooseNumber("word"))),
    await blockPicture(block, title, seen[tensor(layer)], rowNames, word));
  const blockNames = path.map(([, name], at) => `${at + 1} ${name}`);
  const last = path.length;
  const lookAtRows = "Colours of earlier rows return in the rows “Add & norm”, because the residual connection adds the input of a sub-layer to its output. "
    + `Row ${last} has a cosine of ${cosine(last - 1, last - 2)} with row ${last - 1}, the output of the sub-layer alone, and of ${cosine(last - 1, last - 3)} with row ${last - 2}, its input.`;
  const lookAtNorms = CONFIG.norm === "pre"
    ? "No block normalizes the sum itself, so the norm may grow from layer to layer."
    : `The normalization in “Add & norm” sets the norm to √d_model = ${number(Math.sqrt(CONFIG.dModel), 2)}, which its learned scale and bias then change.`;
  const whose = `${side === "encoder" ? "of" : "that predicts"} ${quoted(rowNames[word])}`;
  into.append(
    heading("The architecture"),
    shownNote(),
    element("div", { className: "split" }, element("div", {}, drawn, paragraph("Figure 1 of the paper. Select a block to see what it computes. Lines around the sub-layers are the residual connections; Q, K and V are queries, keys and values.", "quiet")), opened),
    heading("Follow a token"),
    paragraph(`The vector ${whose} in layer ${layer + 1} of the ${side}. The dot in the figure moves from block to block.`),
    tokenPath(drawn, path.map(([name]) => name), tellAt),
    matrix("The token's vector after each block", values, { rowNames: blockNames, rowTitle: "block", look: lookAtRows }),
    bars("Norm of the vector after each block", blockNames, [{ name: "norm", values: sizes }], { title: "block", write: (value) => number(value, 2), look: lookAtNorms }),
  );
}
