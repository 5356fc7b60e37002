// Draws the hypotheses as a tree, with one column per step and the best ones at the top.

const BEAM = DATA.beam;
const tree = document.getElementById("beam");
const BOX = { width: 88, height: 46, across: 116, down: 56, top: 26, left: 8 };
const numberOf = (value) => value.toFixed(3).replace("-", "−");

BEAM.nodes.forEach((node) => { node.children = []; });
BEAM.nodes.forEach((node, at) => { if (node.parent !== null) BEAM.nodes[node.parent].children.push(at); });

// Rows: hypotheses in the beam in their order, then finished ones.
const beginsAt = (node) => (node.ended ? Math.max(1, BEAM.nodes.filter((each) => each.step === node.step && !each.ended).length) : 0);
BEAM.nodes.forEach((node) => { node.row = node.place + beginsAt(node); });

function fate(node) {
  if (node.result === 0) return "the result";
  if (node.ended) return node.result === null ? "finished, later replaced by better hypotheses" : `finished, rank ${node.result + 1} of the results`;
  if (node.children.length) return "continued";
  return node.step === BEAM.steps ? "unfinished at the end of the search" : "not continued";
}

function clipped(word) {
  const letters = [...word];
  return letters.length > 11 ? `${letters.slice(0, 10).join("")}…` : word;
}

function place(node) {
  return { x: BOX.left + node.step * BOX.across, y: BOX.top + node.row * BOX.down };
}

function drawNode(node, at) {
  const { x, y } = place(node);
  const dropped = !node.children.length && !node.ended && node.result === null;
  const kinds = [["best", node.best], ["ended", node.ended], ["dropped", dropped]].filter(([, is]) => is).map(([kind]) => kind);
  // The accessible name begins with the visible text, which speech control requires.
  const label = at ? `${isolated(clipped(node.name))} ${numberOf(node.logProb)} ${numberOf(node.score)}: log probability and score of ${quoted(node.text)}${node.ended ? " with the end token" : ""}, ${fate(node)}` : "start, before the first step";
  const middle = x + BOX.width / 2;
  const group = svgElement("g", { id: `node-${at}`, role: "treeitem", "aria-level": node.step + 1, "aria-label": label, "aria-selected": "false", tabindex: -1, class: kinds.join(" ") },
    svgElement("rect", { x, y, width: BOX.width, height: BOX.height, rx: 5 }),
    svgElement("text", { x: middle, y: y + (at ? 16 : 27), "aria-hidden": "true" }, "\u2068", ...marked(at ? clipped(node.name) : "start", (mark) => svgElement("tspan", { class: "mark" }, mark)), "\u2069"));
  if (at) {
    group.append(" ", svgElement("text", { x: middle, y: y + 29, class: "number", "aria-hidden": "true" }, numberOf(node.logProb)),
      " ", svgElement("text", { x: middle, y: y + 41, class: "number", "aria-hidden": "true" }, numberOf(node.score)));
  }
  return group;
}

function drawEdge(node) {
  const from = place(BEAM.nodes[node.parent]);
  const to = place(node);
  const [x1, y1, x2, y2] = [from.x + BOX.width, from.y + BOX.height / 2, to.x, to.y + BOX.height / 2];
  const x = (x1 + x2) / 2;
  return svgElement("path", { class: node.best ? "edge best" : "edge", d: `M${x1} ${y1} C${x} ${y1} ${x} ${y2} ${x2} ${y2}` });
}

function pick(at) {
  const node = BEAM.nodes[at];
  tree.querySelectorAll("[role=treeitem]").forEach((item) => {
    const is = item.id === `node-${at}`;
    item.setAttribute("aria-selected", String(is));
    item.setAttribute("tabindex", is ? 0 : -1);
  });
  document.getElementById("beam-status").textContent = at
    ? `Step ${node.step}: ${quoted(node.text)}${node.ended ? " and the end token" : ""}. Log probability ${numberOf(node.logProb)}, score ${numberOf(node.score)}; log probability of the last token ${numberOf(node.logProb - BEAM.nodes[node.parent].logProb)}. It is ${fate(node)}.`
    : "Before the first step there is one empty hypothesis.";
}

function neighbour(at, key) {
  const node = BEAM.nodes[at];
  if (key === "ArrowLeft") return node.parent;
  if (key === "ArrowRight") return node.children.find((child) => BEAM.nodes[child].best) ?? node.children[0];
  if (key === "Home") return 0;
  if (key === "End") return BEAM.nodes.findIndex((each) => each.result === 0);
  const step = { ArrowUp: -1, ArrowDown: 1 }[key];
  if (!step) return undefined;
  return BEAM.nodes.findIndex((each) => each.step === node.step && each.row === node.row + step);
}

function makeTree() {
  const rows = Math.max(...BEAM.nodes.map((node) => node.row)) + 1;
  const width = BOX.left * 2 + BEAM.steps * BOX.across + BOX.width;
  const height = BOX.top + rows * BOX.down;
  tree.setAttribute("width", width);
  tree.setAttribute("height", height);
  tree.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const steps = [...Array(BEAM.steps).keys()].map((step) => svgElement("text", { class: "step", x: BOX.left + (step + 1) * BOX.across + BOX.width / 2, y: 14, "aria-hidden": "true" }, `step ${step + 1}`));
  const edges = BEAM.nodes.filter((node) => node.parent !== null).sort((a, b) => a.best - b.best).map(drawEdge);
  tree.replaceChildren(...steps, ...edges, ...BEAM.nodes.map(drawNode));
  const at = (event) => {
    const item = event.target.closest("[role=treeitem]");
    return item ? Number(item.id.split("-")[1]) : null;
  };
  tree.addEventListener("click", (event) => { if (at(event) !== null) pick(at(event)); });
  tree.addEventListener("pointerover", (event) => { if (at(event) !== null && event.pointerType === "mouse") pick(at(event)); });
  tree.addEventListener("keydown", (event) => {
    const next = at(event) === null ? undefined : neighbour(at(event), event.key);
    if (next === undefined) return;
    event.preventDefault();
    if (next === null || next < 0) return;
    pick(next);
    document.getElementById(`node-${next}`).focus();
  });
}

function makeBeamTable() {
  const details = document.getElementById("beam-table");
  details.addEventListener("toggle", () => {
    if (!details.open) return;
    const rows = BEAM.nodes.slice(1).map((node) => [`${node.step}`, element("td", { className: "words", dir: "auto" }, node.text + (node.ended ? " (end)" : "")), numberOf(node.logProb), numberOf(node.score), element("td", { className: "words" }, fate(node))]);
    details.querySelector(".scroll").replaceChildren(tableOf("All hypotheses of the beam.", ["step", "hypothesis", "log probability", "score", "status"], rows));
  }, { once: true });
}

function makeBeam() {
  const best = BEAM.nodes.findIndex((node) => node.result === 0);
  const how = BEAM.size === 1 ? "Greedy search" : `A beam of ${BEAM.size} hypotheses`;
  document.getElementById("beam-summary").textContent = `${how}, length penalty with alpha ${BEAM.alpha}: ${BEAM.steps} steps. The result has log probability ${numberOf(BEAM.nodes[best].logProb)} and score ${numberOf(BEAM.nodes[best].score)}.`;
  makeTree();
  makeBeamTable();
  pick(best);
}

makeChoices();
makeColumns();
makeOverview();
makeBeam();
listen();
drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawOverview);
