"use strict";
// The frame of all figures: a label, a sentence that says what to look for, and the reading of values.
//
// framed(label, look, ...children) -> <figure>
// readable(svg, name, {rows, columns, locate, tell, choose}) -> <output> to be placed below the SVG.
//   It makes the values of a drawing readable by pointer and by arrow keys, and announces them.
//   rows, columns: numbers of places in each direction; locate(x, y): [row, column] of a point of
//   the viewBox, or null; tell(row, column): marks the place and returns its text; tell(null):
//   removes the mark; choose(row, column): called by click or Enter, optional.

// CSS pixels that a drawing may use, at most `most`.
const drawnWidth = (most) => Math.max(240, Math.min(most, document.documentElement.clientWidth - 44));

function framed(label, look, ...children) {
  return element("figure", { className: "drawn" }, element("figcaption", {}, element("b", {}, ...indexed(label)), ...indexed(look ? ` ${look}` : "")), ...children);
}

function readable(svg, name, { rows, columns, locate, tell, choose }) {
  const told = element("output", { className: "told" });
  let place = null;
  const go = (next) => {
    place = next;
    told.textContent = next ? tell(...next) : "";
    if (!next) tell(null);
  };
  const at = (event) => {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return locate(x, y);
  };
  const bounded = (value, count) => Math.max(0, Math.min(value, count - 1));
  for (const [key, value] of Object.entries({ tabindex: 0, role: "application", "aria-roledescription": "drawing", "aria-description": "Arrow keys read the values.", "aria-label": name })) svg.setAttribute(key, value);
  svg.addEventListener("pointermove", (event) => {
    const next = at(event);
    if (String(next) !== String(place)) go(next);
  });
  svg.addEventListener("pointerleave", () => go(null));
  svg.addEventListener("click", (event) => {
    if (choose && at(event)) choose(...at(event));
  });
  svg.addEventListener("focus", () => svg.matches(":focus-visible") && go(place || [0, 0]));
  svg.addEventListener("blur", () => go(null));
  svg.addEventListener("keydown", (event) => {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -columns], End: [0, columns] }[event.key] || [];
    if (event.key === "Escape") go(null);
    else if (down !== undefined) {
      const [row, column] = place || [0, 0];
      go(place ? [bounded(row + down, rows), bounded(column + right, columns)] : [0, 0]);
    } else if (choose && place && (event.key === "Enter" || event.key === " ")) choose(...place);
    else return;
    event.preventDefault();
  });
  return told;
}
