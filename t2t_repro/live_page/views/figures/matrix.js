"use strict";
// A heat map with named rows and columns, a scale and readable cells.
//
// matrix(label, rows, options) -> <figure>; its numbers follow as a folded table.
//   label: what the numbers are; rows: equally long arrays of numbers.
//   options: look: a sentence that says what to look for;
//     rowNames, columnNames: words (default: numbers from 0); rowTitle, columnTitle: what they are;
//     kind: "signed" (default), positive values blue and negative values orange, or "weights", from 0;
//     most: the value with the full colour (default: the largest absolute value);
//     isMasked(row, column): hatched cells; chosen: the index of an outlined row;
//     write(value): the text of a value (default: three decimals); width: CSS pixels (default: 680);
//     choose(row, column): called by click or Enter.
// cells(rows, {kind, most, isMasked}) -> <canvas>: the same colours without names, for small pictures.

const [POSITIVE, NEGATIVE, HIDDEN] = [[62, 130, 220], [222, 120, 40], [128, 128, 128]];
let hatches = 0;

function largestOf(rows, isMasked = () => false) {
  let largest = 1e-9;
  rows.forEach((row, y) => row.forEach((value, x) => {
    if (!isMasked(y, x) && Number.isFinite(value)) largest = Math.max(largest, Math.abs(value));
  }));
  return largest;
}

// One pixel per cell; the opacity is the absolute value.
function cells(rows, { most, isMasked = () => false } = {}) {
  const [height, width] = [rows.length, rows[0].length];
  const full = most ?? largestOf(rows, isMasked);
  const canvas = element("canvas", { className: "cells", width, height });
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  rows.forEach((row, y) => row.forEach((value, x) => {
    const colour = isMasked(y, x) ? [...HIDDEN, 60] : [...(value < 0 ? NEGATIVE : POSITIVE), 255 * Math.min(1, Math.abs(value) / full)];
    image.data.set(colour, 4 * (y * width + x));
  }));
  context.putImageData(image, 0, 0);
  return canvas;
}

function pixels(canvas, box) {
  return svgElement("image", { href: canvas.toDataURL(), preserveAspectRatio: "none", ...box });
}

function nameAt(text, x, y, turned, className = "") {
  const attributes = turned ? { transform: `translate(${x} ${y}) rotate(-55)`, "text-anchor": "start" } : { x, y, "text-anchor": className === "row" ? "end" : "middle" };
  return svgElement("text", { ...attributes, class: className }, "\u2068", ...marked(text, (mark) => svgElement("tspan", { class: "mark" }, mark)), "\u2069");
}

function matrix(label, rows, options = {}) {
  const { look = "", kind = "signed", write = number, isMasked = () => false, chosen = null, choose } = options;
  const space = drawnWidth(options.width ?? 680);
  const [height, width] = [rows.length, rows[0].length];
  const rowNames = options.rowNames || Array.from(rows, (_, at) => String(at));
  const columnNames = options.columnNames || Array.from(rows[0], (_, at) => String(at));
  const { rowTitle = "row", columnTitle = "channel" } = options;
  const most = options.most ?? largestOf(rows, isMasked);
  const rowLetters = space > 450 ? 18 : 14;
  const longest = (names, most) => 7 * Math.max(...names.map((name) => [...clipped(name, most)].length));
  const left = longest(rowNames, rowLetters) + 10;
  const w = Math.min(options.columnNames ? 46 : 22, (space - left - 24) / width);
  const h = Math.max(3, Math.min(24, 480 / height));
  const isTurned = longest(columnNames) > w && Boolean(options.columnNames);
  const top = isTurned ? 0.82 * longest(columnNames) + 16 : 20;
  const [right, bottom] = [left + width * w, top + height * h];
  const scale = Math.min(160, right);
  const titles = `rows: ${rowTitle}, columns: ${columnTitle}`;
  const isBeside = scale + 6.5 * titles.length + 20 < right; // Otherwise the titles are below the scale.
  const [wide, high] = [Math.max(right + 24, 6.5 * titles.length + 12), bottom + (isBeside ? 40 : 56)];
  const svg = svgElement("svg", { class: "matrix", viewBox: `0 0 ${wide} ${high}`, width: wide, height: high });
  svg.append(pixels(cells(rows, { most, isMasked }), { x: left, y: top, width: width * w, height: height * h }));
  if (rows.some((row, y) => row.some((_, x) => isMasked(y, x)))) {
    const id = `hatch-${++hatches}`;
    const d = rows.flatMap((row, y) => Array.from(row, (_, x) => (isMasked(y, x) ? `M${left + x * w} ${top + y * h}h${w}v${h}h${-w}z` : ""))).join("");
    svg.append(svgElement("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svgElement("path", { class: "hatch", d: "M0 0V6" })),
      svgElement("path", { d, fill: `url(#${id})` }));
  }
  svg.append(svgElement("rect", { class: "edge", x: left, y: top, width: width * w, height: height * h }));
  const round = (count, names) => (names ? count : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((each) => each >= count) || count);
  const everyRow = round(Math.ceil(13 / h), options.rowNames);
  const everyColumn = round(Math.ceil((isTurned ? 13 : longest(columnNames) + 8) / w), options.columnNames);
  rowNames.forEach((name, y) => y % everyRow || svg.append(nameAt(clipped(name, rowLetters), left - 5, top + (y + 0.5) * h + 4, false, "row")));
  columnNames.forEach((name, x) => x % everyColumn || svg.append(nameAt(clipped(name), left + (x + (isTurned ? 0.6 : 0.5)) * w, top - 6, isTurned)));
  if (chosen !== null) svg.append(svgElement("rect", { class: "chosen", x: left, y: top + chosen * h, width: width * w, height: h }));
  const mark = svgElement("rect", { class: "marker", width: Math.max(w, 3), height: h, visibility: "hidden" });
  const ramp = Array.from({ length: 64 }, (_, at) => (kind === "signed" ? 2 * (at / 63) - 1 : at / 63));
  svg.append(mark, pixels(cells([ramp], { most: 1 }), { x: 8, y: bottom + 10, width: scale, height: 8 }));
  const ends = kind === "signed" ? [[-most, 8], [0, 8 + scale / 2], [most, 8 + scale]] : [[0, 8], [most, 8 + scale]];
  ends.forEach(([value, x], at) => svg.append(svgElement("text", { class: "tick", x, y: bottom + 32, "text-anchor": at ? (at === ends.length - 1 ? "end" : "middle") : "start" }, write(value))));
  svg.append(svgElement("text", { class: "tick", x: isBeside ? right : 8, y: isBeside ? bottom + 18 : bottom + 50, "text-anchor": isBeside ? "end" : "start" }, titles));
  const told = readable(svg, `${label}. Rows: ${rowTitle}. Columns: ${columnTitle}.`, {
    rows: height,
    columns: width,
    choose,
    locate: (x, y) => (x >= left && x < right && y >= top && y < bottom ? [Math.floor((y - top) / h), Math.floor((x - left) / w)] : null),
    tell(y, x) {
      mark.setAttribute("visibility", y === null ? "hidden" : "visible");
      if (y === null) return "";
      mark.setAttribute("x", left + x * w);
      mark.setAttribute("y", top + y * h);
      const value = isMasked(y, x) ? "masked" : write(rows[y][x]);
      return `${rowTitle} ${quoted(rowNames[y])}, ${columnTitle} ${quoted(columnNames[x])}: ${value}`;
    },
  });
  const table = () => tableOf(label, ["", ...columnNames], rows.map((row, y) => [rowNames[y], ...Array.from(row, (value, x) => (isMasked(y, x) ? "masked" : write(value)))]));
  return framed(label, look, svg, told, folded("Numbers as a table", table));
}
