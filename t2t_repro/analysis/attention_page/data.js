// The data of the page and the user's selection.

const DATA = JSON.parse(document.getElementById("data").textContent);
const UNIT = 65535; // The integer that represents a weight of 1.
const START = "(start)";

const KINDS = {
  cross: {
    name: "Target to source",
    queries: DATA.target,
    keys: DATA.source,
    titles: ["Predicted word", "Source word"],
    reading: "The decoder attends to the source while it predicts each word of the translation (encoder-decoder attention).",
  },
  encoder: {
    name: "Within the source",
    queries: DATA.source,
    keys: DATA.source,
    titles: ["Source word (query)", "Source word (key)"],
    reading: "Each word of the source attends to all words of the source (encoder self-attention).",
  },
  decoder: {
    name: "Within the target",
    queries: DATA.target,
    keys: [START, ...DATA.target.slice(0, -1)],
    titles: ["Predicted word", "Preceding word"],
    reading: "The decoder attends to the preceding words of the translation only (masked decoder self-attention). The first input is a vector of zeros.",
  },
};
for (const [kind, packed] of Object.entries(DATA.maps)) {
  const bytes = Uint8Array.from(atob(packed.weights), (c) => c.charCodeAt(0));
  // The data are little-endian, like all platforms that browsers run on.
  Object.assign(KINDS[kind], { layers: packed.layers, headCount: packed.heads, weights: new Uint16Array(bytes.buffer) });
}

const state = {
  kind: "cross",
  layer: KINDS.cross.layers - 1,
  heads: new Set(Array(KINDS.cross.headCount).keys()),
};

const shown = () => KINDS[state.kind];
const chosenHeads = () => [...state.heads].sort((a, b) => a - b);

function weight(head, query, key) {
  const { weights, headCount, queries, keys } = shown();
  const row = (state.layer * headCount + head) * queries.length + query;
  return weights[row * keys.length + key] / UNIT;
}

function tableOf(caption, columns, rows) {
  const heading = (text) => element("th", { scope: "col", dir: "auto" }, text);
  const body = rows.map(([first, ...cells]) =>
    element("tr", {}, element("th", { scope: "row", dir: "auto" }, first), ...cells.map((cell) =>
      cell instanceof Node ? cell : element("td", {}, cell))));
  return element("table", {}, element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...columns.map(heading))),
    element("tbody", {}, ...body));
}
