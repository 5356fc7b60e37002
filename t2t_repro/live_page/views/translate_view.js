"use strict";
// Shows the beam search for the current text as a tree and step by step.

let shownStep = 0;

const MARKS = {
  SentencePiece: "A bar marks the beginning of a word.",
  Marian: "A bar marks the beginning of a word.",
  "word pieces": "An underscore marks the end of a word or of a run of other characters.",
};

function translateView(into, redraw) {
  const { sourceNames, names, steps, results } = found.result;
  const again = (key) => (value) => {
    chosen[key] = value;
    writeAddress();
    retranslate(drawResult);
  };
  const pieces = (list) => element("ul", { className: "pieces" }, ...list.map((name) => element("li", { dir: "auto" }, name)));
  into.append(
    heading("Subwords"),
    paragraph(`The text is split into subwords of the model's vocabulary. ${MARKS[MODEL.tokenizer.kind]} The last token marks the end of the sentence.`),
    pieces(sourceNames),
    heading("Beam search"),
    paragraph("At each step, beam search keeps the best partial translations (section 6.1). Because longer texts have lower probabilities, the score divides the log probability by a length penalty." + (CONFIG.wordPenalty ? ` Before, this model subtracts a word penalty of ${number(CONFIG.wordPenalty)} for each token.` : "")),
    element("div", { className: "controls" },
      slider("beam size", { min: 1, max: MOST_BEAM, step: 1, value: chosen.beam }, again("beam")),
      slider("length penalty alpha", { min: 0, max: 2, step: 0.1, value: chosen.alpha }, again("alpha"))),
  );
  if (!steps.length) return;
  shownStep = Math.min(shownStep, steps.length - 1);
  const stage = element("div", {});
  const drawStep = () => {
    const { candidates, finished } = steps[shownStep];
    const best = names.length ? found.result.ids.slice(0, shownStep + 1).join() : "";
    const force = (each) => {
      const button = element("button", { type: "button", title: "Continue the translation from this token" }, each.name);
      button.addEventListener("click", () => {
        found.prefix = each.id === EOS ? each.ids.slice(0, -1).concat(EOS) : each.ids;
        retranslate(drawResult);
      });
      return button;
    };
    const table = tableOf(`Step ${shownStep + 1} of ${steps.length}: the best candidates`, ["token", "probability", "total log probability", "score", "text so far"],
      candidates.map((each) => [force(each), percent(Math.exp(each.stepLogProb)), number(each.logProb), number(each.score), each.text]));
    [...table.querySelectorAll("tbody tr")].forEach((row, at) => row.classList.toggle("win", candidates[at].ids.join() === best));
    stage.replaceChildren(table, paragraph(finished.length ? `Finished hypotheses: ${finished.map((each) => `${quoted(each.text)} (${number(each.score)})`).join(", ")}.` : "There are no finished hypotheses yet.", "quiet"));
  };
  const release = element("button", { type: "button", hidden: !found.prefix.length }, "Remove the chosen prefix");
  release.addEventListener("click", () => {
    found.prefix = [];
    retranslate(drawResult);
  });
  const next = element("button", { type: "button", hidden: true }, "Continue the translation from the selected hypothesis");
  let selected = null;
  next.addEventListener("click", () => {
    found.prefix = selected.ids;
    retranslate(drawResult);
  });
  into.append(
    searchTree("The hypotheses of the search", found.result, {
      beam: chosen.beam,
      alpha: chosen.alpha,
      look: "Follow the green path to the translation. At each step all hypotheses of the beam are extended, and only the best remain; the number below the log probability is the score.",
      picked(node) {
        selected = node;
        next.hidden = node.parent === null;
      },
    }),
    element("div", { className: "controls" }, next, release),
    heading("Step by step"),
    element("div", { className: "controls" },
      slider("step", { min: 1, max: steps.length, step: 1, value: shownStep + 1 }, (step) => {
        shownStep = step - 1;
        drawStep();
      })),
    stage,
    paragraph("Choose a token to continue the translation from there."),
    tableOf("Finished hypotheses, best first", ["rank", "score", "log probability", "text"], results.map((each, at) => [String(at + 1), number(each.score), number(each.logProb), each.text])),
  );
  drawStep();
}
