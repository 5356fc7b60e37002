"use strict";
// Building blocks of the views. Each picture is followed by a table of its numbers.

const paragraph = (text, className = "") => element("p", { className }, text);
const heading = (text) => element("h2", {}, text);
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

// Draws rows of numbers: positive values in blue, negative values in orange, the largest opaque.
function heatMap(label, rows) {
  const [height, width] = [rows.length, rows[0].length];
  const canvas = element("canvas", { className: "heat", width, height, role: "img", "aria-label": label });
  canvas.style.aspectRatio = `${Math.max(width, 1)} / ${Math.max(height, width / 8)}`;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  let largest = 1e-9;
  for (const row of rows) for (const value of row) if (Number.isFinite(value) && value > -1e8) largest = Math.max(largest, Math.abs(value));
  rows.forEach((row, y) => row.forEach((value, x) => {
    const colour = value >= 0 ? [62, 130, 220] : value < -1e8 ? [128, 128, 128] : [222, 120, 40];
    image.data.set([...colour, 255 * Math.min(1, Math.abs(value) / largest)], 4 * (y * width + x));
  }));
  context.putImageData(image, 0, 0);
  return canvas;
}

function picture(label, rows, rowNames) {
  const columns = ["", ...Array.from(rows[0], (_, at) => String(at))];
  const table = () => tableOf(label, columns, rows.map((row, at) => [rowNames[at] ?? String(at), ...Array.from(row, (value) => number(value))]));
  return [heatMap(label, rows), folded("Numbers as a table", table)];
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
  return element("label", {}, label, input, shown);
}

function lines(label, series, names) {
  const [w, h] = [600, 220];
  const all = series.flat();
  const [least, most] = [Math.min(0, ...all), Math.max(...all, 1e-12)];
  const y = (value) => h - 20 - ((value - least) / (most - least)) * (h - 40);
  const svg = svgElement("svg", { class: "plot", viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": label },
    svgElement("path", { class: "axis", d: `M40 ${y(0)}H${w}M40 10V${h - 20}` }));
  series.forEach((values, n) => {
    const d = values.map((value, at) => `${at ? "L" : "M"}${40 + (at / (values.length - 1)) * (w - 50)} ${y(value)}`).join("");
    const path = svgElement("path", { d });
    path.style.stroke = `var(--head-${n})`;
    const text = svgElement("text", { x: w - 5, y: 20 + 15 * n, "text-anchor": "end" }, names[n]);
    text.style.fill = `var(--head-${n})`;
    svg.append(path, text);
  });
  svg.append(svgElement("text", { x: 0, y: 14 }, most.toPrecision(2)));
  return svg;
}
