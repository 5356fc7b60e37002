"use strict";
// Figures of the essay about attention: paths, lookup, scaling, heads and masks.

// Hops of a recurrent network and of self-attention between two words. Before the model is
// loaded, the words are separated at spaces.
function whyFigure() {
  const seen = found.source?.tensors;
  const names = seen ? sourceWords() : chosen.text.trim().split(/\s+/);
  if (names.length < 2) return [paragraph("Type a sentence of at least two words.")];
  const from = chosenIndex("from", names.length);
  const to = chosenIndex("to", names.length);
  const distance = Math.abs(to - from);
  const [width, base] = [drawnWidth(680), 120];
  const step = Math.min(60, (width - 40) / names.length);
  const x = (at) => 20 + (at + 0.4) * step;
  const arc = (a, b, height, className) => svgElement("path", { class: className, d: `M${x(a)} ${base}Q${(x(a) + x(b)) / 2} ${base - height} ${x(b)} ${base}` });
  // Close words are written vertically; of very close ones, only the two ends are named.
  const turn = step < 30 ? 90 : 45;
  const height = Math.min(230, base + 24 + (7.5 / (turn === 90 ? 1 : Math.SQRT2)) * Math.max(...names.map((name) => name.length)));
  const svg = svgElement("svg", { class: "hops", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${distance} steps of a recurrent network, one of self-attention` });
  const [first, last] = [Math.min(from, to), Math.max(from, to)];
  for (let at = first; at < last; at++) svg.append(arc(at, at + 1, 40, "recurrent"));
  if (distance) svg.append(arc(from, to, 220, "direct"));
  names.forEach((name, at) => {
    const isEnd = at === from || at === to;
    svg.append(svgElement("circle", { class: isEnd ? "end" : "", cx: x(at), cy: base, r: step < 13 ? 2.5 : 4 }));
    if (isEnd || step >= 13) svg.append(svgElement("text", { class: isEnd ? "end" : "", transform: `translate(${x(at) - 3} ${base + 18}) rotate(${turn})` }, isolated(name)));
  });
  let weight = "";
  if (seen && distance) {
    const pairs = Array.from({ length: CONFIG.layers }, (_, layer) =>
      seen[`encoder/layer_${layer}/self_attention/steps`].map((rows, head) => ({ layer, head, weight: rows[to].weights[from] }))).flat();
    const best = pairs[indexOfLargest(pairs.map((each) => each.weight))];
    weight = ` In this model, ${bare(names[to])} gives ${bare(names[from])} a weight of up to ${percent(best.weight)} (layer ${best.layer + 1}, head ${best.head + 1} of the encoder; below, weights are explained).`;
  }
  const look = `Look at the arcs from ${bare(names[from])} to ${bare(names[to])}: a recurrent network needs ${distance} ${distance === 1 ? "step" : "steps"} (grey), self-attention one (blue).${weight}`;
  return [wordChoice("From", names, "from"), wordChoice("To", names, "to"), framed("Steps between two words", look, svg)];
}

function lookupFigure() {
  const { names, head, layer, word, steps, chooser } = chosenQuery();
  const { products, scaled, weights } = steps;
  const order = [...names.keys()].sort((a, b) => weights[b] - weights[a]);
  const three = order.slice(0, 3).reduce((sum, at) => sum + weights[at], 0);
  const look = `Look at ${bare(names[order[0]])}: the query of ${bare(names[word])} fits its key best and gives it ${percent(weights[order[0]])} of the weight. A dictionary would return this value alone; here the three largest weights together have ${percent(three)}.`;
  const table = () => tableOf("From the query to the weights", ["key", "q · k", "q · k / √dₖ", "weight"], names.map((name, at) => [name, number(products[at]), number(scaled[at]), percent(weights[at])]));
  return [chooser, bars(`Weights of the query of ${bare(names[word])}`, names, [{ name: `layer ${layer + 1}, head ${head + 1}`, values: weights }], { look, title: "key", most: 1, chosen: order[0] }), folded("Each step as a table", table)];
}

function scalingFigure() {
  const { names, word, steps, chooser } = chosenQuery();
  const { weights, products } = steps;
  const hard = softmax(products);
  const [top, hardTop] = [weights, hard].map((values) => Math.max(...values));
  const slope = (value) => number(value * (1 - value));
  const look = `Look at the longest bars: without the division by √${CONFIG.dK} = ${number(Math.sqrt(CONFIG.dK), 2)}, the largest weight of ${bare(names[word])} is ${percent(hardTop)} instead of ${percent(top)}. Its derivative a(1 − a) is ${slope(hardTop)} instead of ${slope(top)}.`;
  return [inThisModel(`d_k is ${CONFIG.dK}.`), chooser,
    bars(`Softmax of the products of ${bare(names[word])}`, names, [{ name: "with division", values: weights }, { name: "without", values: hard }], { look, title: "key", most: 1 }),
    experiment("without scaling, the softmax saturates: one key gets nearly all the weight.", compareSaturation)];
}

function headsFigure() {
  const names = sourceWords();
  const layer = chosenIndex("layer", CONFIG.layers);
  const heads = found.source.tensors[`encoder/layer_${layer}/self_attention/steps`].map((rows) => rows.map((row) => row.weights));
  // The query and the two heads that place the largest share of their weight differently.
  let best = { share: -1 };
  names.forEach((_, word) => heads.forEach((a, one) => heads.forEach((b, two) => {
    const share = a[word].reduce((sum, value, at) => sum + Math.abs(value - b[word][at]), 0) / 2;
    if (one < two && share > best.share) best = { share, word, one, two };
  })));
  const peak = (head) => {
    const at = indexOfLargest(heads[head][best.word]);
    return `head ${head + 1} gives ${percent(heads[head][best.word][at])} to ${bare(names[at])}`;
  };
  const look = heads.length === 1
    ? "This model has one head, so all arcs have one colour."
    : `Look at ${bare(names[best.word])}, where two heads differ most: ${peak(best.one)}, ${peak(best.two)}. Point at a word to see only its arcs.`;
  return [inThisModel(`${heads.length} heads with d_k = ${CONFIG.dK} and d_v = ${CONFIG.dV}.`), controls(counted("layer", CONFIG.layers, "layer")),
    arcs("All heads of a layer", { look, queries: names, keys: names, titles: ["query", "key"], heads, verbs: ["attends to", "is attended to by"], where: `Encoder, layer ${layer + 1}` }),
    experiment("several heads are better than one. (The experiment keeps only the first head of each attention of this model, which was trained with all of them.)", () => compareModels({ heads: otherHeads() }))];
}

async function masksFigure() {
  const { key, side, weights, queries, keys, isCausal, isMasked, hidden } = chosenAttention(await tensors(), chosen.masks);
  const layers = side === "encoder" ? CONFIG.layers : CONFIG.decoderLayers;
  const rows = weights[chosenIndex("head", weights.length)];
  const peaks = rows.map((row) => Math.max(...row));
  // The first row of masked attention has only one key.
  const word = isCausal ? Math.min(chosen.word, rows.length - 1) : indexOfLargest(peaks);
  const told = isCausal
    ? `${hidden} of ${rows.length ** 2} cells are masked (hatched). Row ${bare(queries[word])} can use ${word + 1} ${word ? "keys" : "key"}, the tokens before it.`
    : `${hidden ? "the end of the source is masked (hatched)" : `nothing is masked, and each row uses all ${keys.length} keys`}. Its largest weight, ${percent(peaks[word])}, is at ${bare(keys[indexOfLargest(rows[word])])}.`;
  // Steps through the rows of the mask.
  const step = (name, next) => {
    const button = element("button", { type: "button", disabled: !rows[next] }, name);
    button.addEventListener("click", () => choose("word", next));
    return button;
  };
  return [
    controls(choice("attention", KINDS, key, (value) => choose("masks", value)), counted("layer", layers, "layer"), counted("head", weights.length, "head"), isCausal ? element("span", {}, step("Previous row", word - 1), " ", step("Next row", word + 1)) : null),
    matrix("Weights of one head", rows, { look: `Look at row ${bare(queries[word])}: ${told}`, rowNames: queries, columnNames: keys, rowTitle: side === "encoder" ? "query" : "predicted token", columnTitle: "key", kind: "weights", most: 1, write: percent, chosen: word, isMasked }),
    experiment("the causal mask matters in training only, where later tokens exist.", () => compareModels({ noCausalMask: true })),
  ];
}
