// The tree of hypotheses with its summary and its table.

const BEAM = DATA.beam;

function makeBeamTable(tree) {
  const details = document.getElementById("beam-table");
  details.addEventListener("toggle", () => {
    if (!details.open) return;
    const rows = BEAM.nodes.slice(1).map((node) => [`${node.step}`, element("td", { className: "words", dir: "auto" }, node.text + (node.ended ? " (end)" : "")), number(node.logProb), number(node.score), element("td", { className: "words" }, tree.fate(node))]);
    details.querySelector(".scroll").replaceChildren(tableOf("All hypotheses of the beam.", ["step", "hypothesis", "log probability", "score", "status"], rows));
  }, { once: true });
}

function makeBeam() {
  const best = BEAM.nodes.find((node) => node.result === 0);
  const how = BEAM.size === 1 ? "Greedy search" : `A beam of ${BEAM.size} hypotheses`;
  document.getElementById("beam-summary").textContent = `${how}, length penalty with alpha ${BEAM.alpha}: ${BEAM.steps} steps. The result has log probability ${number(best.logProb)} and score ${number(best.score)}.`;
  makeBeamTable(new BeamTree(document.getElementById("beam"), document.getElementById("beam-status"), BEAM));
}

makeChoices();
makeColumns();
makeOverview();
makeBeam();
document.getElementById("table").addEventListener("toggle", drawTable);
drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawOverview);
