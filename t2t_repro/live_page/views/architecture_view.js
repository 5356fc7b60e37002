"use strict";
// Figure 1, clickable: each block opens its formula, its shapes and its real tensor.

// [block, title, x, y, formula, what it does, tensor(layer)]; coordinates of figure 1, y upwards.
const BLOCKS = [
  ["encoder/embedding", "Input embedding", 0, 0, "√d_model · E[symbol]", "Each subword becomes a vector, a row of a learned table.", () => "input/embedded"],
  ["encoder/positions", "+ positions", 0, 1, "sin(pos / 10000^(2i/d_model)), cos(…)", "Sines and cosines of many wavelengths say where each word stands; without them the order would be lost.", () => "input/output"],
  ["encoder/self_attention", "Self-attention", 0, 2, "Concat(head₁, …, headₕ) W_O", "Every word looks at all words and gathers what it needs of them.", (n) => `encoder/layer_${n}/self_attention/output`],
  ["encoder/self_residual", "Add & norm", 0, 3, "LayerNorm(x + Sublayer(x))", "What came in is added to what came out, and each position is brought to mean 0 and variance 1.", (n) => `encoder/layer_${n}/self_attention_residual/output`],
  ["encoder/feed_forward", "Feed forward", 0, 4, "max(0, x W₁ + b₁) W₂ + b₂", "A small network works on each position alone.", (n) => `encoder/layer_${n}/feed_forward/output`],
  ["encoder/feed_residual", "Add & norm", 0, 5, "LayerNorm(x + Sublayer(x))", "Again the sum with what came in; the layer's result.", (n) => `encoder/layer_${n}/feed_forward_residual/output`],
  ["decoder/embedding", "Output embedding", 1, 0, "√d_model · E[symbol before]", "The translation so far, shifted right by one: before the first symbol there is a vector of zeros.", () => "target/embedded"],
  ["decoder/positions", "+ positions", 1, 1, "sin(pos / 10000^(2i/d_model)), cos(…)", "The same waves for the translation.", () => "target/output"],
  ["decoder/self_attention", "Masked self-attention", 1, 2, "softmax(Q Kᵀ / √dₖ + mask) V", "Every position looks back at what was written before it, never ahead.", (n) => `decoder/layer_${n}/self_attention/output`],
  ["decoder/self_residual", "Add & norm", 1, 3, "LayerNorm(x + Sublayer(x))", "The sum with what came in, normalised.", (n) => `decoder/layer_${n}/self_attention_residual/output`],
  ["decoder/cross_attention", "Cross-attention", 1, 4, "softmax(Q Kᵀ / √dₖ) V", "Queries come from the translation, keys and values from the encoder: here the model looks at the text.", (n) => `decoder/layer_${n}/cross_attention/output`],
  ["decoder/cross_residual", "Add & norm", 1, 5, "LayerNorm(x + Sublayer(x))", "The sum with what came in, normalised.", (n) => `decoder/layer_${n}/cross_attention_residual/output`],
  ["decoder/feed_forward", "Feed forward", 1, 6, "max(0, x W₁ + b₁) W₂ + b₂", "A small network works on each position alone.", (n) => `decoder/layer_${n}/feed_forward/output`],
  ["decoder/feed_residual", "Add & norm", 1, 7, "LayerNorm(x + Sublayer(x))", "The layer's result.", (n) => `decoder/layer_${n}/feed_forward_residual/output`],
  ["decoder/logits", "Linear & softmax", 1, 8, "softmax(x Eᵀ)", "How like each row of the table the vector is: a probability for every symbol of the vocabulary.", () => "logits"],
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
      choice("token", rowNames.map((name, at) => [at, `${at + 1}: ${name}`]), word, chooseNumber("word"))),
    paragraph(`Its output for this sentence: ${rows.length} positions × ${rows[0].length} channels. A row for each position.`),
    ...picture(`Output of ${title}`, rows, rowNames));
  const path = BLOCKS.filter(([name]) => name.startsWith(side) && name !== "decoder/logits");
  const values = path.map(([, , , , , , of]) => seen[of(layer)][word]);
  const size = (row) => Math.sqrt(dot(row, 0, row, 0, row.length));
  into.append(
    heading("The architecture"),
    element("div", { className: "split" }, figure(redraw), opened),
    heading("Follow a token"),
    paragraph(`“${rowNames[word]}” on its way through the ${side}'s layer ${layer + 1}: one row for each block, from the bottom of the figure to its top.`),
    ...picture("The token's vector after each block", values, path.map(([, name]) => name)),
    tableOf("How the token changes", ["after", "length of the vector", "first channels"], path.map(([, name], at) => [name, number(size(values[at])), Array.from(values[at].slice(0, 4), (value) => number(value, 2)).join("  ")])),
  );
}
