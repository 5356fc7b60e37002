"use strict";
// One head and one query: the steps of equation 1 with the model's numbers.

const KINDS = [["encoder/self", "encoder, self-attention"], ["decoder/self", "decoder, masked self-attention"], ["decoder/cross", "decoder, cross-attention"]];

async function attentionView(into, redraw) {
  const { sourceNames, names } = found.result;
  if (!names.length) return into.append(paragraph("Type a sentence."));
  const seen = await tensors();
  const [side, kind] = (KINDS.find(([each]) => each === chosen.kind) || KINDS[2])[0].split("/");
  const layers = side === "encoder" ? CONFIG.layers : CONFIG.decoderLayers;
  const layer = Math.min(chosen.layer, layers - 1);
  const steps = seen[`${side}/layer_${layer}/${kind}_attention/steps`];
  const head = Math.min(chosen.head, steps.length - 1);
  const isCausal = side === "decoder" && kind === "self";
  const source = sourceNames.slice(0, MOST_SHOWN);
  const queries = side === "encoder" ? source : names.slice(0, MOST_SHOWN);
  const keys = isCausal ? ["(start)", ...queries.slice(0, -1)] : source;
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
  const mask = isCausal ? `${MINUS}10⁹ is added for future tokens (masked).` : "No key is masked in this attention, so the columns scaled and masked are equal.";
  const matrix = (name) => steps[head].map((row) => row[name]);
  into.append(
    heading("Attention in numbers"),
    shownNote(),
    formula("Attention(Q, K, V) = softmax(frac(Q K^T, sqrt(d_k))) V"),
    element("div", { className: "controls" },
      choice("attention", KINDS, `${side}/${kind}`, choose("kind", String)),
      choice("layer", counted(layers), layer, choose("layer", Number)),
      choice("head", counted(steps.length), head, choose("head", Number)),
      choice(side === "encoder" ? "token" : "predicted token", queries.map((name, at) => [at, `${at + 1}: ${isolated(name)}`]), word, choose("word", Number))),
    paragraph(`The dot products of the query of ${quoted(queries[word])} with all keys (product) are divided by √${CONFIG.dK} = ${number(Math.sqrt(CONFIG.dK), 2)} (scaled). ${mask} The softmax of the result gives weights that sum to 1.`),
    tableOf(`Head ${head + 1} of layer ${layer + 1} for ${quoted(queries[word])}`, ["key", "product", "scaled", "masked", "weight"], rows),
    paragraph(`The output of the head is the sum of the values with these weights: a vector of ${output.length} numbers.`),
    ...picture("The weighted sum of the values", [output], [queries[word]]),
    heading("All heads of the layer"),
    paragraph("Each row is a query, each column a key."),
    element("ul", { className: "heads" }, ...heads),
    heading("Before and after the mask"),
    paragraph(isCausal ? "Masked keys are gray: all keys after the position of the query." : "All keys are visible in this attention, so the mask has no effect."),
    ...picture("Scaled products before the mask", matrix("scaled"), queries),
    ...picture("Scaled products after the mask", matrix("masked"), queries),
    ...picture("Weights", matrix("weights"), queries),
  );
}
