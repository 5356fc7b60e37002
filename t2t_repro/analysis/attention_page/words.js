// Draws two columns of words with lines between them, and the controls above.

const columns = { queries: document.getElementById("queries"), keys: document.getElementById("keys") };
const other = { queries: "keys", keys: "queries" };
const lines = document.getElementById("lines");
const LEAST_LINE = 0.02; // Smaller weights are not drawn.
const LEAST_LINE_OF_ALL = 0.15; // The same while no word is selected.

const current = () => state.preview || state.pinned;

function share(side, chosen, index) {
  return side === "queries" ? meanWeight(chosen, index) : meanWeight(index, chosen);
}

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
    state.pinned = state.preview = null;
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
  Object.entries(columns).forEach(([side, list], at) => {
    document.getElementById(`${side}-title`).textContent = titles[at];
    const items = shown()[side].map((word, index) => element("li", { id: `${side}-${index}`, role: "option", tabIndex: index ? -1 : 0, title: word },
      element("span", { className: "name", dir: "auto" }, ...marked(word, (mark) => element("span", { className: "mark" }, mark))), element("span", { className: "percent" })));
    list.replaceChildren(...items);
  });
}

function itemAt(event) {
  const item = event.target.closest("li");
  if (!item) return null;
  const [side, index] = item.id.split("-");
  return { side, index: Number(index) };
}

const same = (a, b) => a && b && a.side === b.side && a.index === b.index;

function go(side, index) {
  state.preview = null;
  state.pinned = { side, index };
  for (const list of Object.values(columns)) for (const item of list.children) item.tabIndex = -1;
  const item = columns[side].children[index];
  item.tabIndex = 0;
  columns[other[side]].children[0].tabIndex = 0;
  item.focus();
  drawWords();
}

function strongest(side, index) {
  const partners = [...shown()[other[side]].keys()];
  return partners.reduce((best, at) => (share(side, index, at) > share(side, index, best) ? at : best), 0);
}

function onKey(event) {
  const at = itemAt(event);
  if (!at || event.altKey || event.ctrlKey || event.metaKey) return;
  const last = shown()[at.side].length - 1;
  const across = { queries: "ArrowRight", keys: "ArrowLeft" }[at.side];
  if (event.key === "ArrowDown") go(at.side, Math.min(at.index + 1, last));
  else if (event.key === "ArrowUp") go(at.side, Math.max(at.index - 1, 0));
  else if (event.key === "Home") go(at.side, 0);
  else if (event.key === "End") go(at.side, last);
  else if (event.key === across) go(other[at.side], strongest(at.side, at.index));
  else if (event.key === "Enter" || event.key === " ") go(at.side, at.index);
  else if (event.key === "Escape") {
    state.pinned = state.preview = null;
    drawWords();
  } else return;
  event.preventDefault();
}

function listen() {
  for (const list of Object.values(columns)) {
    list.addEventListener("keydown", onKey);
    list.addEventListener("click", (event) => {
      const at = itemAt(event);
      if (!at) return;
      if (same(at, state.pinned)) {
        state.pinned = state.preview = null;
        drawWords();
      } else go(at.side, at.index);
    });
    list.addEventListener("focusin", (event) => {
      const at = itemAt(event);
      // Handles focus by keyboard only; clicks have their own handler.
      if (at && !same(at, state.pinned) && event.target.matches(":focus-visible")) go(at.side, at.index);
    });
    list.addEventListener("pointerover", (event) => {
      const at = itemAt(event);
      if (event.pointerType !== "mouse" || !at || same(at, current())) return;
      state.preview = at;
      drawWords();
    });
    list.addEventListener("pointerleave", () => {
      if (!state.preview) return;
      state.preview = null;
      drawWords();
    });
  }
  document.getElementById("table").addEventListener("toggle", drawTable);
  new ResizeObserver(drawLines).observe(document.getElementById("columns"));
}

function pairsToDraw() {
  const chosen = current();
  const { queries, keys } = shown();
  const pairs = [];
  for (let query = 0; query < queries.length; query++) {
    if (chosen && chosen.side === "queries" && chosen.index !== query) continue;
    for (let key = 0; key < keys.length; key++) {
      if (chosen && chosen.side === "keys" && chosen.index !== key) continue;
      if (!chosen) pairs.push([query, key, null, meanWeight(query, key), LEAST_LINE_OF_ALL]);
      else for (const head of chosenHeads()) pairs.push([query, key, head, weight(head, query, key), LEAST_LINE]);
    }
  }
  return pairs.filter(([, , , value, least]) => value >= least);
}

function drawLines() {
  const box = lines.getBoundingClientRect();
  const middle = (side, index) => {
    const item = columns[side].children[index].getBoundingClientRect();
    return item.top + item.height / 2 - box.top;
  };
  const count = shown().headCount;
  const paths = pairsToDraw().map(([query, key, head, value]) => {
    const shift = head === null ? 0 : ((head + 0.5) / count - 0.5) * 10;
    const from = middle("queries", query) + shift;
    const to = middle("keys", key) + shift;
    const x = box.width / 2;
    const path = svgElement("path", {
      d: `M2 ${from} C${x} ${from} ${x} ${to} ${box.width - 2} ${to}`,
      "stroke-opacity": value.toFixed(3),
      "stroke-width": 2.5,
      "data-weight": value.toFixed(5),
      "data-head": head === null ? "mean" : head,
      "data-pair": `${query}-${key}`,
    });
    path.style.stroke = head === null ? "var(--accent)" : headColour(head);
    return path;
  });
  lines.replaceChildren(...paths);
}

function drawShares() {
  const chosen = current();
  for (const [side, list] of Object.entries(columns)) {
    [...list.children].forEach((item, index) => {
      const is = same(chosen, { side, index });
      const partner = chosen && chosen.side === other[side];
      const value = partner ? share(chosen.side, chosen.index, index) : null;
      item.classList.toggle("chosen", Boolean(is));
      item.setAttribute("aria-selected", String(Boolean(same(state.pinned, { side, index }))));
      item.style.setProperty("--share", value === null ? 0 : value.toFixed(3));
      item.querySelector(".percent").textContent = value !== null && value >= 0.005 ? percent(value) : "";
    });
  }
}

function headsInWords() {
  const heads = chosenHeads();
  if (!heads.length) return "no head";
  if (heads.length === shown().headCount) return "mean of all heads";
  if (heads.length === 1) return `head ${heads[0] + 1}`;
  return `mean of heads ${heads.map((head) => head + 1).join(", ")}`;
}

function drawStatus() {
  const chosen = current();
  const status = document.getElementById("status");
  const where = `${shown().name}, layer ${state.layer + 1}, ${headsInWords()}.`;
  if (!state.heads.size) status.textContent = `${where} Select a head to show its weights.`;
  else if (!chosen) status.textContent = `${where} Select a word to show its weights.`;
  else {
    const word = quoted(shown()[chosen.side][chosen.index]);
    const partners = shown()[other[chosen.side]].map((name, index) => [share(chosen.side, chosen.index, index), name]);
    const top = partners.sort((a, b) => b[0] - a[0]).slice(0, 5).filter(([value]) => value >= 0.005);
    const told = top.map(([value, name]) => `${quoted(name)} ${percent(value)}`).join(", ");
    const verb = chosen.side === "queries" ? (state.kind === "encoder" ? "attends to" : "is predicted from") : "is attended to by";
    status.textContent = `${word} ${verb} ${told || "no word in particular"}. ${where}`;
  }
}

function drawTable() {
  const details = document.getElementById("table");
  if (!details.open) return;
  const into = details.querySelector(".scroll");
  const chosen = state.pinned;
  const { queries, keys, titles } = shown();
  if (!chosen) {
    const rows = queries.map((word, query) => [word, ...keys.map((_, key) => meanWeight(query, key).toFixed(3))]);
    into.replaceChildren(tableOf(`Rows: ${titles[0].toLowerCase()}. Columns: ${titles[1].toLowerCase()}. Weights: ${headsInWords()}.`, ["", ...keys], rows));
    return;
  }
  const heads = chosenHeads();
  const value = (head, index) => (chosen.side === "queries" ? weight(head, chosen.index, index) : weight(head, index, chosen.index));
  const rows = shown()[other[chosen.side]].map((word, index) => [word, share(chosen.side, chosen.index, index).toFixed(3), ...heads.map((head) => value(head, index).toFixed(3))]);
  const role = chosen.side === "queries" ? "query" : "key";
  into.replaceChildren(tableOf(`Weights of the ${role} ${quoted(shown()[chosen.side][chosen.index])}, layer ${state.layer + 1}.`, ["", "mean", ...heads.map((head) => `head ${head + 1}`)], rows));
}

function drawWords() {
  drawLines();
  drawShares();
  drawStatus();
  drawTable();
}
