"use strict";
// Bars with their numbers, several series side by side. The figure is a table, so it needs no second one.
//
// bars(label, names, series, options) -> <figure>
//   names: the labels of the bars; series: [{name, values}], values of 0 or more;
//   options: look: a sentence that says what to look for; title: what the names are;
//     write(value): the text of a value (default: percent); most: the value of a full bar
//     (default: the largest of all series); chosen: the index of an emphasized row.

function bars(label, names, series, { look = "", title = "", write = percent, most, chosen = null } = {}) {
  const full = most ?? Math.max(1e-12, ...series.flatMap(({ values }) => Array.from(values)));
  const cell = (value, at) => {
    const bar = element("span", { className: "bar" });
    bar.style.width = `${100 * Math.min(1, value / full)}%`;
    bar.style.background = headColour(at);
    return element("td", {}, element("span", { className: "track" }, bar), element("span", { className: "value" }, write(value)));
  };
  const head = [title, ...series.map(({ name }) => name)].map((text) => element(text ? "th" : "td", text ? { scope: "col" } : {}, text));
  const rows = names.map((name, row) => element("tr", { className: row === chosen ? "win" : "" },
    element("th", { scope: "row", dir: "auto" }, name), ...series.map(({ values }, at) => cell(values[row], at))));
  head.slice(1).forEach((each) => (each.style.width = `${100 / series.length}%`));
  const table = element("table", { className: "bars" }, element("caption", { className: "unseen" }, label),
    element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
  return framed(label, look, table);
}
