"use strict";
// One head, one word: the four steps of equation 1 with the real numbers.

const KINDS = [["encoder/self", "encoder, self-attention"], ["decoder/self", "decoder, masked self-attention"], ["decoder/cross", "decoder, attention to the source"]];

async function attentionView(into, redraw) {
  const { sourceNames, names } = found.result;
  if (!names.length) return into.append(paragraph("Type a sentence."));
  const seen = await tensors();
  const [side, kind] = chosen.kind.split("/");
  const layers = side === "encoder" ? CONFIG.layers : CONFIG.decoderLayers;
  const layer = Math.min(chosen.layer, layers - 1);
  const steps = seen[`${side}/layer_${layer}/${kind}_attention/steps`];
  const head = Math.min(chosen.head, steps.length - 1);
  const source = sourceNames.slice(0, MOST_SHOWN);
  const queries = side === "encoder" ? source : names.slice(0, MOST_SHOWN);
  const keys = chosen.kind === "decoder/self" ? ["(start)", ...queries.slice(0, -1)] : source;
  const word = Math.min(chosen.word, queries.length - 1);
  const choose = (key, convert) => (value) => {
    chosen[key] = convert(value);
    redraw();
  };
  const counted = (count) => Array.from({ length: count }, (_, n) => [n, String(n + 1)]);
  const { products, scaled, masked, weights, output } = steps[head][word];
  const rows = keys.map((key, at) => [key, number(products[at]), number(scaled[at]), masked[at] < -1e8 ? `${MINUS}10⁹` : number(masked[at]), percent(weights[at])]);
  const heads = steps.map((rowsOfHead, n) => {
    const map = heatMap(`Weights of head ${n + 1}`, rowsOfHead.map((row) => row.weights));
    const button = element("button", { type: "button", "aria-pressed": String(n === head) }, map, `head ${n + 1}`);
    button.addEventListener("click", () => choose("head", Number)(n));
    return element("li", {}, button);
  });
  const matrix = (name) => steps[head].map((row) => row[name]);
  into.append(
    heading("Attention by numbers"),
    formula("Attention(Q, K, V) = softmax(Q Kᵀ / √dₖ) V"),
    element("div", { className: "controls" },
      choice("attention", KINDS, chosen.kind, choose("kind", String)),
      choice("layer", counted(layers), layer, choose("layer", Number)),
      choice("head", counted(steps.length), head, choose("head", Number)),
      choice(side === "encoder" ? "word" : "symbol to predict", queries.map((name, at) => [at, `${at + 1}: ${name}`]), word, choose("word", Number))),
    paragraph(`The query of “${queries[word]}” is multiplied by the key of each word (products); divided by √${CONFIG.dK} = ${number(Math.sqrt(CONFIG.dK), 2)} (scaled); what lies in the future gets ${MINUS}10⁹ (masked); softmax makes of these weights that add up to 1.`),
    tableOf(`Head ${head + 1} of layer ${layer + 1} for “${queries[word]}”`, ["looks at", "product", "scaled", "masked", "weight"], rows),
    paragraph(`The values of the words, added up by these weights, are the head's answer: ${output.length} numbers.`),
    ...picture("The weighted sum of the values", [output], [queries[word]]),
    heading("Every head of the layer"),
    paragraph("A row for each word that looks, a column for each word that is looked at."),
    element("ul", { className: "heads" }, ...heads),
    heading("Before and after the mask"),
    paragraph(chosen.kind === "decoder/self" ? "Grey is what may not be seen: everything after the row's own position." : "Here every word may be seen, so the mask changes nothing."),
    ...picture("Scaled products, before the mask", matrix("scaled"), queries),
    ...picture("The same, after the mask", matrix("masked"), queries),
    ...picture("The weights", matrix("weights"), queries),
  );
}
