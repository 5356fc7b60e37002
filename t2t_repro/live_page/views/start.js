"use strict";
// Starts the page and switches between the views.

// The essay is a part of the page's text, so it has no function that creates it.
const VIEWS = {
  essay: ["Essay"],
  translate: ["Translate", translateView],
  architecture: ["Architecture", architectureView],
  attention: ["Attention in numbers", attentionView],
  whatif: ["What if", whatIfView],
  formulas: ["Formulas", formulasView],
};
const view = document.getElementById("view");
const text = document.getElementById("text");
let drawing = 0;

async function draw(focus = null) {
  const mine = ++drawing;
  document.querySelectorAll("#views button").forEach((button) => {
    if (button.id === `to-${chosen.view}`) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
  });
  const isEssay = chosen.view === "essay";
  for (const name of ["essay", "contents"]) document.getElementById(name).hidden = !isEssay;
  view.hidden = isEssay;
  if (isEssay) drawEssay();
  if (!found.result) return;
  writeAddress();
  if (isEssay) return;
  const active = document.activeElement;
  const into = document.createDocumentFragment();
  await VIEWS[chosen.view][1](into, draw);
  if (mine !== drawing) return; // The user has made another choice in the meantime.
  const place = view.contains(active) ? [...view.querySelectorAll("select, input, button")].indexOf(active) : -1;
  view.replaceChildren(into);
  // Restores the keyboard focus.
  if (focus) document.getElementById(focus)?.focus();
  else if (place >= 0) view.querySelectorAll("select, input, button")[place]?.focus();
}

function drawResult() {
  const { source, translation, score, tokens, unread } = found.result;
  const cut = unread ? `; ${unreadNote("the text", unread)}` : "";
  const sentences = [...new Intl.Segmenter(undefined, { granularity: "sentence" }).segment(chosen.text)].filter(({ segment }) => segment.trim());
  const several = sentences.length > 1 ? "; the model reads the text as one sentence and may translate only a part of it" : "";
  document.getElementById("translation").textContent = source.length ? translation || "\u2014" : "Type a sentence.";
  document.getElementById("summary").textContent = source.length ? `score ${number(score)}, ${tokens} tokens${found.prefix.length ? ", with the prefix that you chose" : ""}${cut}${several}` : "";
  draw();
}

function start() {
  readAddress();
  if (!Object.hasOwn(VIEWS, chosen.view)) chosen.view = "essay";
  text.value = chosen.text;
  const trained = document.getElementById("trained");
  const languages = new Intl.DisplayNames("en", { type: "language" });
  trained.textContent = trained.textContent.replace(/\b([a-z]{2,3}) to ([a-z]{2,3})\b/, (_, from, to) => `${languages.of(from)} to ${languages.of(to)}`);
  for (const [name, [title]] of Object.entries(VIEWS)) {
    const button = element("button", { type: "button", id: `to-${name}` }, title);
    button.addEventListener("click", () => {
      chosen.view = name;
      draw();
    });
    document.getElementById("views").append(element("li", {}, button));
  }
  const translateText = () => retranslate(drawResult, () => chosen.view === "essay" && drawEssay());
  const changeText = () => {
    chosen.text = text.value;
    found.prefix = [];
    loaded.then(translateText);
  };
  text.addEventListener("input", changeText);
  const examples = document.querySelectorAll("#examples button");
  document.getElementById("try").hidden = !examples.length;
  for (const button of examples) {
    button.addEventListener("click", () => {
      text.value = button.textContent;
      changeText();
    });
  }
  draw();
  startEssay();
  window.addEventListener("hashchange", () => location.reload());
  loaded.then(translateText, (error) => (document.getElementById("translation").textContent = String(error)));
}

start();
