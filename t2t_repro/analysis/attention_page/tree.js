"use strict";
// Draws the hypotheses of a beam search as a tree; used by both pages.
//
// new BeamTree(svg, status, beam, picked)
//   svg, status: the <svg role="tree"> and the text below it.
//   beam: {size, alpha, steps, nodes}; a node is {parent (index; null for the root, which is first),
//     step, place, name, text, ended, logProb, score, best, result (rank or null)}.
//   picked(node): called after another node is selected; optional.
// One column per step, the best hypotheses at the top, finished ones below those in the beam.

const BOX = { width: 88, height: 46, across: 116, down: 56, top: 26, left: 8 };

function clipped(word, most = 11) {
  const letters = [...word];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : word;
}

class BeamTree {
  constructor(svg, status, beam, picked = () => {}) {
    Object.assign(this, { svg, status, beam, picked });
    const { nodes } = beam;
    nodes.forEach((node) => { node.children = []; });
    nodes.forEach((node, at) => { if (node.parent !== null) nodes[node.parent].children.push(at); });
    const inBeam = ({ step }) => Math.max(1, nodes.filter((each) => each.step === step && !each.ended).length);
    nodes.forEach((node) => { node.row = node.place + (node.ended ? inBeam(node) : 0); });
    this.make();
    this.pick(Math.max(0, nodes.findIndex((node) => node.result === 0)));
  }

  fate(node) {
    if (node.result === 0) return "the result";
    if (node.ended) return node.result === null ? "finished, later replaced by better hypotheses" : `finished, rank ${node.result + 1} of the results`;
    if (node.children.length) return "continued";
    return node.step === this.beam.steps ? "unfinished at the end of the search" : "not continued";
  }

  place(node) {
    return { x: BOX.left + node.step * BOX.across, y: BOX.top + node.row * BOX.down };
  }

  drawNode(node, at) {
    const { x, y } = this.place(node);
    const dropped = !node.children.length && !node.ended && node.result === null;
    const kinds = [["best", node.best], ["ended", node.ended], ["dropped", dropped]].filter(([, is]) => is).map(([kind]) => kind);
    // The accessible name begins with the visible text, which speech control requires.
    const label = at ? `${isolated(clipped(node.name))} ${number(node.logProb)} ${number(node.score)}: log probability and score of ${quoted(node.text)}${node.ended ? " with the end token" : ""}, ${this.fate(node)}` : "start, before the first step";
    const middle = x + BOX.width / 2;
    const group = svgElement("g", { id: `${this.svg.id}-node-${at}`, role: "treeitem", "aria-level": node.step + 1, "aria-label": label, "aria-selected": "false", tabindex: -1, class: kinds.join(" ") },
      svgElement("rect", { x, y, width: BOX.width, height: BOX.height, rx: 5 }),
      svgElement("text", { x: middle, y: y + (at ? 16 : 27), "aria-hidden": "true" }, "\u2068", ...marked(at ? clipped(node.name) : "start", (mark) => svgElement("tspan", { class: "mark" }, mark)), "\u2069"));
    if (at) {
      group.append(" ", svgElement("text", { x: middle, y: y + 29, class: "number", "aria-hidden": "true" }, number(node.logProb)),
        " ", svgElement("text", { x: middle, y: y + 41, class: "number", "aria-hidden": "true" }, number(node.score)));
    }
    return group;
  }

  drawEdge(node) {
    const from = this.place(this.beam.nodes[node.parent]);
    const to = this.place(node);
    const [x1, y1, x2, y2] = [from.x + BOX.width, from.y + BOX.height / 2, to.x, to.y + BOX.height / 2];
    const x = (x1 + x2) / 2;
    return svgElement("path", { class: node.best ? "edge best" : "edge", d: `M${x1} ${y1} C${x} ${y1} ${x} ${y2} ${x2} ${y2}` });
  }

  pick(at) {
    const { nodes } = this.beam;
    const node = nodes[at];
    this.items.forEach((item, index) => {
      item.setAttribute("aria-selected", String(index === at));
      item.setAttribute("tabindex", index === at ? 0 : -1);
    });
    this.status.textContent = at
      ? `Step ${node.step}: ${quoted(node.text)}${node.ended ? " and the end token" : ""}. Log probability ${number(node.logProb)}, score ${number(node.score)}; log probability of the last token ${number(node.logProb - nodes[node.parent].logProb)}. It is ${this.fate(node)}.`
      : "Before the first step there is one empty hypothesis.";
    this.picked(node);
  }

  neighbour(at, key) {
    const { nodes } = this.beam;
    const node = nodes[at];
    if (key === "ArrowLeft") return node.parent;
    if (key === "ArrowRight") return node.children.find((child) => nodes[child].best) ?? node.children[0];
    if (key === "Home") return 0;
    if (key === "End") return nodes.findIndex((each) => each.result === 0);
    const step = { ArrowUp: -1, ArrowDown: 1 }[key];
    if (!step) return undefined;
    return nodes.findIndex((each) => each.step === node.step && each.row === node.row + step);
  }

  make() {
    const { nodes, steps } = this.beam;
    const rows = Math.max(...nodes.map((node) => node.row)) + 1;
    const width = BOX.left * 2 + steps * BOX.across + BOX.width;
    const height = BOX.top + rows * BOX.down;
    for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) this.svg.setAttribute(name, value);
    const titles = [...Array(steps).keys()].map((step) => svgElement("text", { class: "step", x: BOX.left + (step + 1) * BOX.across + BOX.width / 2, y: 14, "aria-hidden": "true" }, `step ${step + 1}`));
    const edges = nodes.filter((node) => node.parent !== null).sort((a, b) => a.best - b.best).map((node) => this.drawEdge(node));
    this.items = nodes.map((node, at) => this.drawNode(node, at));
    this.svg.replaceChildren(...titles, ...edges, ...this.items);
    const at = (event) => this.items.indexOf(event.target.closest("[role=treeitem]"));
    this.svg.addEventListener("click", (event) => { if (at(event) >= 0) this.pick(at(event)); });
    this.svg.addEventListener("pointerover", (event) => { if (at(event) >= 0 && event.pointerType === "mouse") this.pick(at(event)); });
    this.svg.addEventListener("keydown", (event) => {
      const next = at(event) < 0 ? undefined : this.neighbour(at(event), event.key);
      if (next === undefined) return;
      event.preventDefault();
      if (next === null || next < 0) return;
      this.pick(next);
      this.items[next].focus();
    });
  }
}
