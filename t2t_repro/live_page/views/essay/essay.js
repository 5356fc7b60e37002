"use strict";
// Draws the figures of the essay, each one computed by the model from the current sentence.
//
// A figure is an asynchronous function that returns its elements. It reads the results of the model
// from `found.source`, or from `found.result` and `tensors()`, and the reader's choices from `chosen`,
// which is also part of the address. The figures of the source do not wait for the translation.

let essayDrawing = 0;

// A token without the mark of its beginning or end, in quotation marks.
const bare = (name) => quoted(name.replace(/^\u2581(?=.)|(?<=.)_$/, ""));
const inThisModel = (text) => paragraph(`In this model: ${text}`, "here");
const sourceWords = () => found.source.names;
const targetWords = () => found.result.names.slice(0, MOST_SHOWN);
const indexOfLargest = (values) => values.reduce((best, value, at) => (value > values[best] ? at : best), 0);
const whole = (value) => Math.round(value).toLocaleString("en");

function choose(key, value) {
  chosen[key] = value;
  writeAddress();
  drawEssay();
}

const chosenIndex = (key, count) => Math.min(chosen[key], count - 1);

// Buttons of the tokens of a sentence, of which one is chosen.
function wordChoice(label, names, key) {
  const now = chosenIndex(key, names.length);
  const buttons = names.map((name, at) => {
    const button = element("button", { type: "button", dir: "auto", "aria-pressed": String(at === now) }, name);
    button.addEventListener("click", () => choose(key, at));
    return element("li", {}, button);
  });
  return element("div", { className: "words-to-choose" }, element("span", { className: "field" }, label),
    element("ul", { "aria-label": label }, ...buttons));
}

function counted(label, count, key) {
  return choice(label, numbered(count), chosenIndex(key, count), (value) => choose(key, Number(value)));
}

const controls = (...parts) => element("div", { className: "controls" }, ...parts);

// The steps of a head of the encoder's self-attention for the chosen query.
function chosenQuery() {
  const names = sourceWords();
  const layer = chosenIndex("layer", CONFIG.layers);
  const heads = found.source.tensors[`encoder/layer_${layer}/self_attention/steps`];
  const [head, word] = [chosenIndex("head", heads.length), chosenIndex("word", names.length)];
  const chooser = element("div", {}, wordChoice("Query", names, "word"), controls(counted("layer", CONFIG.layers, "layer"), counted("head", heads.length, "head")));
  return { names, layer, heads, head, word, steps: heads[head][word], chooser };
}

// Draws one figure, unless it shows the current results and choices already. The keyboard focus stays
// on the same control.
async function drawFigure(place) {
  const [make, ...sources] = FIGURES[place.dataset.figure];
  const current = () => (SOURCE_FIGURES.includes(make) ? found.source : found.result);
  const [from, choices] = [current(), JSON.stringify({ ...chosen, text: "" })];
  if (place.from === from && place.choices === choices) return;
  let made = [paragraph(from ? "Type a sentence." : "The figure appears when the model is loaded.", "quiet")];
  try {
    if (make === whyFigure || (from?.ids ? from.ids.length : from?.source.length > 1)) made = await make();
  } catch (error) {
    if (current() === from) throw error;
  }
  if (current() !== from) return; // The text has changed, so this figure is drawn again.
  Object.assign(place, { from, choices });
  const focusable = () => [...place.querySelectorAll("select, input, button, summary")];
  const at = focusable().indexOf(document.activeElement);
  const code = folded("The program that computes it, in this page", () =>
    element("pre", { tabIndex: 0 }, sources.map((source) => String(source)).join("\n\n")));
  place.replaceChildren(...made, code);
  if (at >= 0) focusable()[at]?.focus();
  place.querySelectorAll("figure").forEach((figure) => figure.draw?.());
}

// Draws all figures, those that are visible first, and stops if a newer drawing begins.
async function drawEssay() {
  const mine = ++essayDrawing;
  const places = [...document.querySelectorAll("[data-figure]")];
  const isNear = (place) => {
    const { top, bottom } = place.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  };
  const near = places.filter(isNear);
  const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
  for (const place of near) {
    await drawFigure(place);
    if (mine !== essayDrawing) return;
  }
  await pause(300); // While the reader types, the model is free for the next key.
  for (const place of places.filter((each) => !near.includes(each))) {
    if (mine !== essayDrawing) return;
    await drawFigure(place);
    await pause(0);
  }
  if (mine !== essayDrawing) return;
  if (found.result && found.result.encoded === found.source) document.getElementById("essay").dataset.drawn = chosen.text;
}

// Typesets the formulas, lists the sections and follows the reader through them.
function startEssay() {
  for (const each of document.querySelectorAll("#essay .formula")) {
    each.replaceChildren(math(each.textContent));
    each.tabIndex = 0; // A long formula can be scrolled on a narrow screen.
  }
  const links = new Map();
  const list = document.getElementById("sections");
  for (const section of document.querySelectorAll("#essay section")) {
    const link = element("a", { href: `#section=${section.id}` }, section.querySelector("h2").textContent);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      chosen.section = section.id;
      writeAddress();
      section.scrollIntoView();
      section.querySelector("h2").focus({ preventScroll: true });
    });
    section.querySelector("h2").tabIndex = -1;
    links.set(section, link);
    list.append(element("li", {}, link));
  }
  document.getElementById("contents").open = matchMedia("(min-width: 64rem)").matches;
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) links.get(target).setAttribute("aria-current", "location");
      else links.get(target).removeAttribute("aria-current");
    }
  }, { rootMargin: "-45% 0px -45% 0px" });
  for (const section of links.keys()) observer.observe(section);
  document.getElementById(chosen.section)?.scrollIntoView();
}
