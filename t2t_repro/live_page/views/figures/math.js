"use strict";
// Typesets formulas as MathML.
//
// math(text) -> <math>; formula(text) -> the same in a box of its own.
//   text: a formula in a line, such as "softmax(frac(Q K^T, sqrt(d_k))) V": `_` and `^` attach an
//   index or a power, whose brackets are not shown; `frac(a, b)` and `sqrt(a)` are the fraction and
//   the root. The line itself is the alternative text.

const mathElement = (name, ...children) => {
  const made = document.createElementNS("http://www.w3.org/1998/Math/MathML", name);
  made.append(...children);
  return made;
};

function math(text) {
  const tokens = text.match(/[\p{L}]+|[\d.]+|\s+|./gu);
  let at = 0;
  const row = (items) => (items.length === 1 ? items[0] : mathElement("mrow", ...items));
  const space = () => {
    while (/^\s/.test(tokens[at] ?? "")) at++;
  };
  // Reads up to one of the tokens in `ends` and skips it.
  function read(...ends) {
    const items = [];
    for (space(); at < tokens.length && !ends.includes(tokens[at]); space()) {
      // Only words, such as "sin", need a space before the next letter, and after a number.
      const last = items.at(-1);
      const isWord = last?.localName === "mi" && last.textContent.length > 1;
      if (isWord ? /\p{L}/u.test(tokens[at]) : last?.localName === "mn" && /\p{L}{2}/u.test(tokens[at])) {
        items.push(mathElement("mspace"));
        items.at(-1).setAttribute("width", "0.25em");
      }
      items.push(scripted());
      // A sign after another operator belongs to the number that follows.
      if (last?.localName === "mo" && tokens[at - 1] === "\u2212") items.at(-1).setAttribute("form", "prefix");
    }
    at++;
    return items;
  }
  function scripted() {
    const scripts = {};
    const base = atom();
    while (tokens[at] === "_" || tokens[at] === "^") {
      const kind = tokens[at++];
      scripts[kind] = tokens[at] === "(" ? (at++, row(read(")"))) : atom();
    }
    const { _: sub, "^": sup } = scripts;
    if (sub && sup) return mathElement("msubsup", base, sub, sup);
    return sub ? mathElement("msub", base, sub) : sup ? mathElement("msup", base, sup) : base;
  }
  function atom() {
    const token = tokens[at++];
    if (token === "sqrt" || token === "frac") {
      at++;
      return token === "sqrt" ? mathElement("msqrt", ...read(")")) : mathElement("mfrac", row(read(",")), row(read(")")));
    }
    if (token === "(") {
      const inner = row(read(")"));
      const brackets = ["(", ")"].map((each) => mathElement("mo", each));
      for (const each of brackets) each.setAttribute("stretchy", Boolean(inner.querySelector("mfrac") || inner.localName === "mfrac"));
      return mathElement("mrow", brackets[0], inner, brackets[1]);
    }
    if (/\p{L}{2}/u.test(token)) {
      const word = mathElement("mi", token);
      word.setAttribute("mathvariant", "normal");
      return word;
    }
    return mathElement(/\p{L}|∞/u.test(token) ? "mi" : /[\d.]/.test(token) ? "mn" : "mo", token);
  }
  const made = mathElement("math", ...read());
  made.setAttribute("alttext", text);
  made.setAttribute("displaystyle", "true"); // Fractions have their full size.
  return made;
}

// Semicolons outside of brackets begin a new line. Long formulas scroll, so the keyboard must reach them.
function formula(text) {
  const lines = text.split(/; (?![^()]*\))/).map((line) => element("div", {}, math(line)));
  return element("div", { className: "formula", tabIndex: 0, role: "group", "aria-label": "Formula" }, ...lines);
}
