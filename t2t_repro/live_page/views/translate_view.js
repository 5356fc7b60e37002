"use strict";
// Type, and see the beam search grow the translation symbol by symbol.

let shownStep = 0;

function translateView(into, redraw) {
  const { sourceNames, names, steps, results } = found.result;
  const again = (key) => (value) => {
    chosen[key] = value;
    writeAddress();
    retranslate(drawResult);
  };
  const pieces = (list) => element("ul", { className: "pieces" }, ...list.map((name) => element("li", {}, name)));
  into.append(
    heading("Subwords"),
    paragraph("The text is cut into pieces that the model knows; a bar marks the beginning of a word. The last piece says that the sentence ends."),
    pieces(sourceNames),
    heading("Beam search"),
    paragraph("Of all beginnings of a translation the search keeps the best few (section 6.1). A longer one has a smaller probability, hence the score: the log probability over the length penalty."),
    element("div", { className: "controls" },
      slider("beam size", { min: 1, max: MOST_BEAM, step: 1, value: chosen.beam }, again("beam")),
      slider("alpha of the length penalty", { min: 0, max: 2, step: 0.1, value: chosen.alpha }, again("alpha"))),
  );
  if (!steps.length) return;
  shownStep = Math.min(shownStep, steps.length - 1);
  const stage = element("div", {});
  const drawStep = () => {
    const { candidates, finished } = steps[shownStep];
    const best = names.length ? found.result.ids.slice(0, shownStep + 1).join() : "";
    const force = (each) => {
      const button = element("button", { type: "button", title: "Translate again from here" }, each.name);
      button.addEventListener("click", () => {
        found.prefix = each.id === EOS ? each.ids.slice(0, -1).concat(EOS) : each.ids;
        retranslate(drawResult);
      });
      return button;
    };
    const table = tableOf(`Step ${shownStep + 1} of ${steps.length}: the best continuations`, ["symbol", "its probability", "log probability", "score", "text so far"],
      candidates.map((each) => [force(each), percent(Math.exp(each.stepLogProb)), number(each.logProb), number(each.score), each.text]));
    [...table.querySelectorAll("tbody tr")].forEach((row, at) => row.classList.toggle("win", candidates[at].ids.join() === best));
    stage.replaceChildren(table, paragraph(finished.length ? `Finished so far: ${finished.map((each) => `“${each.text}” (${number(each.score)})`).join(", ")}.` : "Nothing has finished yet.", "quiet"));
  };
  const release = element("button", { type: "button", hidden: !found.prefix.length }, "Let the model begin freely again");
  release.addEventListener("click", () => {
    found.prefix = [];
    retranslate(drawResult);
  });
  into.append(
    element("div", { className: "controls" },
      slider("step", { min: 1, max: steps.length, step: 1, value: shownStep + 1 }, (step) => {
        shownStep = step - 1;
        drawStep();
      }), release),
    stage,
    paragraph("Choose a symbol, and the rest is translated again from there."),
    tableOf("The hypotheses that finished, best first", ["place", "score", "log probability", "text"], results.map((each, at) => [String(at + 1), number(each.score), number(each.logProb), each.text])),
  );
  drawStep();
}
