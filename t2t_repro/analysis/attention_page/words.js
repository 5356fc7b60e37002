// The words with the lines between them, the controls above and the table below.

const arcs = new WordArcs(
  Object.fromEntries(["queries", "keys", "lines", "status"].map((id) => [id, document.getElementById(id)])),
  () => ({
    ...shown(),
    heads: chosenHeads(),
    weight,
    verbs: [state.kind === "encoder" ? "attends to" : "is predicted from", "is attended to by"],
    where: `${shown().name}, layer ${state.layer + 1}, ${shownHeads()}.`,
  }),
  drawTable,
);
const shownHeads = () => headsInWords(chosenHeads(), shown().headCount);

function choiceOf(fieldset, type, values, checked) {
  values.forEach(([value, text, colour], at) => {
    const input = element("input", { type, name: fieldset.id, value });
    input.checked = checked(value, at);
    const label = element("label", { className: colour ? "choice head" : "choice" }, input, element("span", {}, text));
    if (colour) label.style.setProperty("--colour", colour);
    fieldset.append(label);
  });
}

function makeChoices() {
  const [kinds, layers, heads] = ["kinds", "layers", "heads"].map((id) => document.getElementById(id));
  choiceOf(kinds, "radio", Object.entries(KINDS).map(([kind, { name }]) => [kind, name]), (kind) => kind === state.kind);
  makeLayers(layers);
  const numbers = [...Array(shown().headCount).keys()];
  choiceOf(heads, "checkbox", numbers.map((head) => [head, String(head + 1), headColour(head)]), () => true);
  const all = element("button", { type: "button", id: "all-heads" }, "All");
  all.addEventListener("click", () => chooseHeads(numbers));
  heads.append(all);
  kinds.addEventListener("change", (event) => {
    state.kind = event.target.value;
    state.layer = Math.min(state.layer, shown().layers - 1);
    makeLayers(layers);
    makeColumns();
    drawAll();
  });
  layers.addEventListener("change", (event) => {
    state.layer = Number(event.target.value);
    drawAll();
  });
  heads.addEventListener("change", (event) => {
    const head = Number(event.target.value);
    if (event.target.checked) state.heads.add(head);
    else state.heads.delete(head);
    drawAll();
  });
}

function makeLayers(fieldset) {
  fieldset.querySelectorAll("label").forEach((label) => label.remove());
  const numbers = [...Array(shown().layers).keys()];
  choiceOf(fieldset, "radio", numbers.map((layer) => [layer, String(layer + 1)]), (layer) => layer === state.layer);
}

function chooseHeads(heads) {
  state.heads = new Set(heads);
  document.querySelectorAll("#heads input").forEach((input) => {
    input.checked = state.heads.has(Number(input.value));
  });
  drawAll();
}

function makeColumns() {
  const { titles, reading } = shown();
  document.getElementById("reading").textContent = reading;
  ["queries", "keys"].forEach((side, at) => (document.getElementById(`${side}-title`).textContent = titles[at]));
  arcs.makeWords();
}

function drawTable() {
  const details = document.getElementById("table");
  if (!details.open) return;
  const into = details.querySelector(".scroll");
  const chosen = arcs.pinned;
  const { queries, keys, titles } = shown();
  if (!chosen) {
    const rows = queries.map((word, query) => [word, ...keys.map((_, key) => arcs.mean(query, key).toFixed(3))]);
    into.replaceChildren(tableOf(`Rows: ${titles[0].toLowerCase()}. Columns: ${titles[1].toLowerCase()}. Weights: ${shownHeads()}.`, ["", ...keys], rows));
    return;
  }
  const heads = chosenHeads();
  const value = (head, index) => (chosen.side === "queries" ? weight(head, chosen.index, index) : weight(head, index, chosen.index));
  const rows = shown()[OTHER_SIDE[chosen.side]].map((word, index) => [word, arcs.share(chosen.side, chosen.index, index).toFixed(3), ...heads.map((head) => value(head, index).toFixed(3))]);
  const role = chosen.side === "queries" ? "query" : "key";
  into.replaceChildren(tableOf(`Weights of the ${role} ${quoted(shown()[chosen.side][chosen.index])}, layer ${state.layer + 1}.`, ["", "mean", ...heads.map((head) => `head ${head + 1}`)], rows));
}

function drawWords() {
  arcs.draw();
  drawTable();
}
