// What is shown and what of it is chosen; the other parts draw it.

const DATA = JSON.parse(document.getElementById("data").textContent);
const UNIT = 65535; // A weight of 1.
const START = "(start)";

const KINDS = {
  cross: {
    name: "Target to source",
    queries: DATA.target,
    keys: DATA.source,
    titles: ["Word being predicted", "Word of the text"],
    reading: "The decoder looks at the text while it predicts each word of the translation (encoder-decoder attention).",
  },
  encoder: {
    name: "Within the source",
    queries: DATA.source,
    keys: DATA.source,
    titles: ["Word of the text", "Word of the text"],
    reading: "The encoder looks from each word of the text at all of them (encoder self-attention).",
  },
  decoder: {
    name: "Within the target",
    queries: DATA.target,
    keys: [START, ...DATA.target.slice(0, -1)],
    titles: ["Word being predicted", "Word read before"],
    reading: "The decoder looks at the words that it has read, never at those that follow (masked decoder self-attention). Before the first word it has read nothing: a vector of zeros.",
  },
};
for (const [kind, packed] of Object.entries(DATA.maps)) {
  const bytes = Uint8Array.from(atob(packed.weights), (c) => c.charCodeAt(0));
  // Little-endian, as is every processor that runs a browser.
  Object.assign(KINDS[kind], { layers: packed.layers, headCount: packed.heads, weights: new Uint16Array(bytes.buffer) });
}

const state = {
  kind: "cross",
  layer: KINDS.cross.layers - 1,
  heads: new Set(Array(KINDS.cross.headCount).keys()),
  pinned: null, // {side: "queries" or "keys", index}
  preview: null, // the same, of the word that is pointed at
};

const shown = () => KINDS[state.kind];
const chosenHeads = () => [...state.heads].sort((a, b) => a - b);

function weight(head, query, key) {
  const { weights, headCount, queries, keys } = shown();
  const row = (state.layer * headCount + head) * queries.length + query;
  return weights[row * keys.length + key] / UNIT;
}

function meanWeight(query, key) {
  const heads = chosenHeads();
  if (!heads.length) return 0;
  return heads.reduce((sum, head) => sum + weight(head, query, key), 0) / heads.length;
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const quoted = (word) => `“${word}”`;

// SentencePiece begins a word with a bar; what it means is quieter than the word.
function marked(word, quiet) {
  return word.length > 1 && word.startsWith("\u2581") ? [quiet("\u2581"), word.slice(1)] : [word];
}

const headColour = (head) => `var(--head-${head % 8})`;

function tableOf(caption, columns, rows) {
  const heading = (text) => element("th", { scope: "col" }, text);
  const body = rows.map(([first, ...cells]) =>
    element("tr", {}, element("th", { scope: "row" }, first), ...cells.map((cell) =>
      cell instanceof Node ? cell : element("td", {}, cell))));
  return element("table", {}, element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...columns.map(heading))),
    element("tbody", {}, ...body));
}
