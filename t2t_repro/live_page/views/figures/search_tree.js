"use strict";
// Beam search as a tree.
//
// searchTree(label, result, options) -> <figure>; its nodes follow as a folded table.
//   result: the worker's answer to "translate"; options: look: a sentence that says what to look
//   for; beam, alpha: settings of the search; picked(node): called after a node is selected.

let drawnTrees = 0;

// Returns the nodes of a tree: in each step, the hypotheses of the beam and those that ended.
function searchNodes({ steps, results }) {
  const best = results[0]?.ids || [];
  const rank = new Map(results.map(({ ids }, at) => [ids.join(), at]));
  const nodes = [{ parent: null, step: 0, place: 0, name: "", text: "", ids: [], ended: false, logProb: 0, score: 0, best: true, result: null }];
  const indices = new Map([["", 0]]);
  const known = new Set();
  steps.forEach(({ alive, finished }, at) => {
    const ended = finished.filter(({ ids }) => !known.has(ids.join()));
    for (const group of [alive, ended]) {
      group.forEach((each, place) => {
        const key = each.ids.join();
        if (group === ended) known.add(key);
        indices.set(key, nodes.length);
        const { ids, name, text, logProb, score } = each;
        const parent = indices.get(ids.slice(0, -1).join());
        nodes.push({ parent, step: at + 1, place, name, text, ids, ended: group === ended, logProb, score, best: best.slice(0, at + 1).join() === key, result: rank.get(key) ?? null });
      });
    }
  });
  return nodes;
}

function searchTree(label, result, { look = "", beam, alpha, picked }) {
  const nodes = searchNodes(result);
  const status = element("p", { className: "status", role: "status" });
  const svg = svgElement("svg", { class: "beam", id: `tree-${++drawnTrees}`, role: "tree", "aria-label": label });
  const tree = new BeamTree(svg, status, { size: beam, alpha, steps: result.steps.length, nodes }, picked);
  const legend = [["best", "path to the result"], ["", "in the beam"], ["dropped", "not continued"], ["ended", "finished"]];
  const table = () => tableOf(label, ["step", "log probability", "score", "status", "hypothesis"],
    nodes.slice(1).map((node) => [String(node.step), number(node.logProb), number(node.score), tree.fate(node), node.text + (node.ended ? " (end)" : "")]));
  return framed(label, look, element("div", { className: "scroll" }, svg),
    element("ul", { className: "legend" }, ...legend.map(([kind, text]) => element("li", {}, element("span", { className: `box ${kind}` }), text))),
    status, folded("Hypotheses as a table", table));
}
