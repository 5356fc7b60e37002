"use strict";
// Building blocks of the views: texts, tables and controls.

// A text whose variables, such as d_model, have an index.
const indexed = (text) => text.split(/\b([a-z]_(?:model|ff|k|v))\b/).map((part, at) => (at % 2 ? element("span", {}, element("i", {}, part[0]), element("sub", {}, part.slice(2))) : part));
const paragraph = (text, className = "") => element("p", { className }, ...indexed(text));
const heading = (text) => element("h2", {}, text);
const sizeOf = (row) => Math.sqrt(dot(row, 0, row, 0, row.length)); // The norm of a vector.
const numbered = (count) => Array.from({ length: count }, (_, at) => [at, String(at + 1)]); // The options of `choice`.
const unreadNote = (what, unread) => `${what} is too long: its last ${unread} subwords were not read`;

function tableOf(caption, columns, rows, className = "") {
  // Numbers are right-aligned, words left-aligned.
  const kind = (cell) => ({ className: /^([\u2212\d]|< )/.test(cell) ? "" : "words", dir: "auto" });
  const head = columns.map((text, at) => element("th", { scope: "col", ...kind(at && rows.length ? rows[0][at] : "") }, text));
  const body = rows.map(([first, ...cells]) =>
    element("tr", {}, element("th", { scope: "row", dir: "auto" }, first), ...cells.map((cell) => element("td", kind(cell), cell))));
  const table = element("table", { className }, element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
  return element("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": caption }, table);
}

// The table is created when it is opened, because some have thousands of cells.
function folded(summary, make) {
  const details = element("details", {}, element("summary", {}, summary));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(make());
  });
  return details;
}

function choice(label, options, value, choose) {
  const select = element("select", {}, ...options.map(([key, text]) => element("option", { value: key, selected: String(key) === String(value) }, text)));
  select.addEventListener("change", () => choose(select.value));
  return element("label", {}, label, select);
}

function slider(label, { min, max, step, value }, choose) {
  const shown = element("output", {}, String(value));
  const input = element("input", { type: "range", min, max, step });
  input.value = value;
  input.addEventListener("input", () => {
    shown.textContent = input.value;
    choose(Number(input.value));
  });
  return element("label", {}, element("span", {}, ...indexed(label)), input, shown);
}
