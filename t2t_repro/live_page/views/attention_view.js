"use strict";
// Attention between words, then the steps of equation 1 for one head and one query.

const KINDS = [["encoder/self", "encoder, self-attention"], ["decoder/self", "decoder, masked self-attention"], ["decoder/cross", "decoder, cross-attention"]];
const READ = { "encoder/self": "attends to", "decoder/self": "is predicted from", "decoder/cross": "is predicted from" };

// Returns the words, the steps and the mask of an attention; `wanted` is the user's choice.
function chosenAttention(seen, wanted = chosen.kind) {
  const [key, title] = KINDS.find(([each]) => each === wanted) || KINDS[2];
  const [side, kind] = key.split("/");
  const layer = Math.min(chosen.layer, (side === "encoder" ? CONFIG.layers : CONFIG.decoderLayers) - 1);
  const name = `${side}/layer_${layer}/${kind}_attention`;
  const steps = seen[`${name}/steps`];
  const [source, target] = [found.result.sourceNames, found.result.names].map((words) => words.slice(0, MOST_SHOWN));
  const queries = side === "encoder" ? source : target;
  const isCausal = key === "decoder/self";
  const keys = isCausal ? ["(start)", ...queries.slice(0, -1)] : source;
  const isMasked = (query, key) => steps[0][query].masked[key] < -1e8; // The same in all heads.
  const hidden = queries.flatMap((_, query) => keys.filter((_, key) => isMasked(query, key))).length;
  return { key, title, side, layer, name, steps, queries, keys, isCausal, isMasked, hidden, weights: steps.map((rows) => rows.map((row) => row.weights)) };
}

function attentionArcs(label, attention, look) {
  const { key, title, side, layer, queries, keys, weights } = attention;
  return arcs(label, {
    look, queries, keys, heads: weights, where: `${title}, layer ${layer + 1}`.replace(/^./, (first) => first.toUpperCase()),
    titles: [side === "encoder" ? "Source word (query)" : "Predicted word (query)", key === "decoder/self" ? "Preceding word (key)" : "Source word (key)"],
    verbs: [READ[key], "is attended to by"],
  });
}

function attentionControls({ key, side, layer, steps }, choose) {
  return [
    choice("attention", KINDS, key, choose("kind", String)),
    choice("layer", numbered(side === "encoder" ? CONFIG.layers : CONFIG.decoderLayers), layer, choose("layer", Number)),
    choice("head", numbered(steps.length), Math.min(chosen.head, steps.length - 1), choose("head", Number)),
  ];
}

// The largest weight of all heads except those of the end token, which many heads use as a rest.
function strongestPair({ weights, queries, keys, isCausal }) {
  let best = { weight: -1 };
  weights.forEach((rows, head) => rows.forEach((row, query) => row.forEach((weight, key) => {
    if ((isCausal && key === 0) || query === queries.length - 1 || keys[key] === found.result.sourceNames.at(-1)) return;
    if (weight > best.weight) best = { head, query, key, weight };
  })));
  if (best.weight < 0) return "Each line is a weight.";
  return `Look at ${quoted(queries[best.query])}: head ${best.head + 1} takes ${percent(best.weight)} of its weight from ${quoted(keys[best.key])}. Lines of less than ${percent(LEAST_LINE_OF_ALL)} appear when you select a word.`;
}

function vectorsPart(seen, attention, head, word) {
  const { name, queries, keys, steps } = attention;
  const [dK, dV] = [CONFIG.dK, CONFIG.dV];
  const part = (rows, width) => rows.map((row) => row.slice(head * width, (head + 1) * width));
  const options = { rowTitle: "word", columnTitle: "channel" };
  return [
    heading("Queries, keys and values"),
    element("p", {}, "The head multiplies the vectors of the words by three matrices: ", math("W^Q"), " makes the query of a word, ", math("W^K"), " the key and ", math("W^V"), ` the value${hasWeights(`${name}/query/bias`) ? "; this model also adds a bias to each" : ""}. Queries and keys have ${dK} channels, values ${dV}.`),
    matrix(`Query of head ${head + 1}`, part([seen[`${name}/queries`][word]], dK), { ...options, rowNames: [queries[word]], look: "This vector is compared with all keys below." }),
    matrix(`Keys of head ${head + 1}`, part(seen[`${name}/keys`], dK), { ...options, rowNames: keys, look: "A key whose colours follow those of the query has a large dot product with it." }),
    matrix(`Values of head ${head + 1}`, part(seen[`${name}/values`], dV), { ...options, rowNames: keys, look: "The head sums these vectors, each multiplied by its weight." }),
    matrix("Output of the head: the weighted sum of the values", [steps[head][word].output], { ...options, rowNames: [queries[word]], look: "It resembles the values with the largest weights." }),
  ];
}

async function attentionView(into, redraw) {
  if (!found.result.names.length) return into.append(paragraph("Type a sentence."));
  const seen = await tensors();
  const attention = chosenAttention(seen);
  const { layer, side, steps, queries, keys, isCausal, isMasked, hidden } = attention;
  const head = Math.min(chosen.head, steps.length - 1);
  const word = Math.min(chosen.word, queries.length - 1);
  const choose = (name, convert) => (value) => {
    chosen[name] = convert(value);
    redraw();
  };
  const { products, scaled, masked, weights } = steps[head][word];
  const rows = keys.map((key, at) => [key, number(products[at]), number(scaled[at]), isMasked(word, at) ? `${MINUS}10⁹` : number(masked[at]), percent(weights[at])]);
  const small = attention.weights.map((values, n) => {
    const map = cells(values, { most: 1 });
    map.setAttribute("role", "presentation");
    const button = element("button", { type: "button", "aria-pressed": String(n === head) }, map, `head ${n + 1}`);
    button.addEventListener("click", () => choose("head", Number)(n));
    return element("li", {}, button);
  });
  const whatIsMasked = isCausal ? "future tokens" : "the end of the source";
  const mask = isCausal || hidden ? `${MINUS}10⁹ is added for ${whatIsMasked} (masked), so that their weights are 0.` : "No key is masked in this attention, so the columns scaled and masked are equal.";
  const all = (name) => steps[head].map((row) => row[name]);
  const names = { rowNames: queries, columnNames: keys, rowTitle: "query", columnTitle: "key", chosen: word };
  into.append(
    heading("Attention between words"),
    shownNote(),
    element("div", { className: "controls" }, ...attentionControls(attention, choose).slice(0, 2)),
    attentionArcs("Weights of all heads", attention, strongestPair(attention)),
    heading("All heads of the layer"),
    paragraph("Each row is a query, each column a key; the full colour is a weight of 100 %. Select a head to see its numbers below."),
    element("ul", { className: "heads" }, ...small),
    heading("One head in numbers"),
    formula("Attention(Q, K, V) = softmax(frac(Q K^T, sqrt(d_k))) V"),
    element("div", { className: "controls" },
      ...attentionControls(attention, choose).slice(2),
      choice(side === "encoder" ? "token" : "predicted token", queries.map((name, at) => [at, `${at + 1}: ${isolated(name)}`]), word, choose("word", Number))),
    paragraph(`The dot products of the query of ${quoted(queries[word])} with all keys (product) are divided by √${CONFIG.dK} = ${number(Math.sqrt(CONFIG.dK), 2)} (scaled). ${mask} The softmax of the result gives weights that sum to 1.`),
    tableOf(`Head ${head + 1} of layer ${layer + 1} for ${quoted(queries[word])}`, ["key", "product", "scaled", "masked", "weight"], rows),
    ...vectorsPart(seen, attention, head, word),
    heading(isCausal || hidden ? "Before and after the mask" : "From products to weights"),
    matrix("Scaled products", all("scaled"), { ...names, look: isCausal ? "Before the mask, a query has products with the words that follow it, too." : "Each row contains the products of a query with all keys." }),
    ...(isCausal || hidden ? [matrix("After the mask", all("masked"), { ...names, isMasked, look: isCausal ? "Hatched keys follow the query: a position may not see the words that it has to predict." : "The hatched key is the end of the source, which this model hides." })] : []),
    matrix("Weights, after the softmax", all("weights"), { ...names, kind: "weights", most: 1, write: percent, isMasked, look: `Each row sums to 100 %. The softmax favours large products${isCausal || hidden ? ", and masked keys have no weight" : ""}.` }),
  );
}
