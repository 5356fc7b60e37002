"use strict";
// Curves over common axes with ticks, names at the ends of the lines, and a crosshair.
//
// curves(label, xs, series, options) -> <figure>; its numbers follow as a folded table.
//   xs: increasing numbers; series: [{name, values}], one value per x;
//   options: look: a sentence that says what to look for; xTitle, yTitle: the axes with their units;
//     write(value): the text of a y (default: three significant digits).

// Returns about `count` round numbers between two values.
function ticks(least, most, count) {
  const raw = (most - least) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5, 10].find((each) => each * power >= raw) || 10);
  const first = Math.ceil(least / step - 1e-9);
  return Array.from({ length: Math.floor(most / step + 1e-9) - first + 1 }, (_, at) => (first + at) * step);
}

function tickText(value) {
  const size = Math.abs(value);
  if (!size || (size >= 0.001 && size < 1e5)) return Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 6 }).replace("-", MINUS);
  const [digits, exponent] = Number(value.toPrecision(3)).toExponential().split("e");
  return `${digits}·10${[...exponent].map((each) => ({ "-": "⁻", "+": "" })[each] ?? "⁰¹²³⁴⁵⁶⁷⁸⁹"[each]).join("")}`.replace("-", MINUS);
}

function curves(label, xs, series, { look = "", xTitle = "", yTitle = "", write = (value) => value.toPrecision(3).replaceAll("-", MINUS) } = {}) {
  const width = drawnWidth(680);
  const names = Math.min(width / 3, 16 + 6.6 * Math.max(...series.map(({ name }) => name.length)));
  const [left, right, top, bottom] = [58, width - names, 26, 230];
  const all = series.flatMap(({ values }) => Array.from(values));
  const [least, most] = [Math.min(0, ...all), Math.max(...all, 1e-12)];
  const [from, to] = [xs[0], xs.at(-1)];
  const x = (value) => left + ((value - from) / (to - from)) * (right - left);
  const y = (value) => bottom - ((value - least) / (most - least)) * (bottom - top);
  const svg = svgElement("svg", { class: "curves", viewBox: `0 0 ${width} 276`, width, height: 276 });
  const writeAt = (className, at, text, anchor = "middle") => svg.append(svgElement("text", { class: className, x: at[0], y: at[1], "text-anchor": anchor }, text));
  for (const value of ticks(least, most, 4)) {
    svg.append(svgElement("path", { class: "grid", d: `M${left} ${y(value)}H${right}` }));
    writeAt("tick", [left - 6, y(value) + 4], tickText(value), "end");
  }
  for (const value of ticks(from, to, width > 450 ? 7 : 4)) {
    svg.append(svgElement("path", { class: "axis", d: `M${x(value)} ${bottom}v5` }));
    writeAt("tick", [x(value), bottom + 19], tickText(value));
  }
  svg.append(svgElement("path", { class: "axis", d: `M${left} ${y(Math.max(0, least))}H${right}M${left} ${top}V${bottom}` }));
  writeAt("title", [(left + right) / 2, bottom + 40], xTitle);
  writeAt("title", [4, 14], yTitle, "start");
  let free = Infinity; // Names move up where they would overlap.
  const byHeight = [...series.keys()].sort((a, b) => y(series[b].values.at(-1)) - y(series[a].values.at(-1)));
  for (const at of byHeight) {
    const { name, values } = series[at];
    const path = svgElement("path", { class: "line", d: Array.from(values, (value, n) => `${n ? "L" : "M"}${x(xs[n])} ${y(value)}`).join("") });
    path.style.stroke = headColour(at);
    svg.append(path);
    free = Math.min(free - 15, y(values.at(-1)) + 4);
    writeAt("name", [right + 6, free], name, "start");
    svg.lastChild.style.fill = headColour(at);
  }
  const cross = svgElement("path", { class: "cross", visibility: "hidden" });
  const dot = svgElement("circle", { class: "dot", r: 4, visibility: "hidden" });
  svg.append(cross, dot);
  const nearest = (value) => xs.reduce((best, each, at) => (Math.abs(each - value) < Math.abs(xs[best] - value) ? at : best), 0);
  const told = readable(svg, `${label}. ${yTitle} by ${xTitle}.`, {
    rows: series.length,
    columns: xs.length,
    locate(px, py) {
      if (px < left || px > right || py < top - 10 || py > bottom + 10) return null;
      const at = nearest(from + ((px - left) / (right - left)) * (to - from));
      const away = series.map(({ values }) => Math.abs(y(values[at]) - py));
      return [away.indexOf(Math.min(...away)), at];
    },
    tell(row, at) {
      for (const each of [cross, dot]) each.setAttribute("visibility", row === null ? "hidden" : "visible");
      if (row === null) return "";
      const [px, py] = [x(xs[at]), y(series[row].values[at])];
      cross.setAttribute("d", `M${px} ${top}V${bottom}M${left} ${py}H${right}`);
      dot.setAttribute("cx", px);
      dot.setAttribute("cy", py);
      return `${xTitle} ${tickText(xs[at])}: ${series.map(({ name, values }) => `${name} ${write(values[at])}`).join(", ")}`;
    },
  });
  const table = () => tableOf(label, [xTitle, ...series.map(({ name }) => name)], xs.map((value, at) => [tickText(value), ...series.map(({ values }) => write(values[at]))]));
  return framed(label, look, svg, told, folded("Numbers as a table", table));
}
