"use strict";
// Creates elements; used by both pages.

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

// Encloses a text in Unicode's first strong isolate, so that a sentence in one direction
// can contain a word in the other.
const isolated = (text) => `\u2068${text}\u2069`;
const quoted = (text) => `“${isolated(text)}”`;

// Formats a share in percent. Only a share of zero is shown as zero.
function percent(share) {
  const value = 100 * share;
  if (value > 0 && value < 0.005) return "< 0.01 %";
  return `${value.toFixed(value > 0 && value < 1 ? 2 : 1)} %`;
}

const MINUS = "\u2212";
const number = (value, digits = 3) => value.toFixed(digits).replace("-", MINUS);
const headColour = (head) => `var(--head-${head % 8})`;

// Renders SentencePiece's bar at the beginning of a word with `quiet`.
function marked(word, quiet) {
  return word.length > 1 && word.startsWith("\u2581") ? [quiet("\u2581"), word.slice(1)] : [word];
}

function svgElement(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
