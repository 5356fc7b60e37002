"use strict";
// The way of information along a row of words.
//
// hops(name, count, places) -> <svg>: `count` words as dots, and an arc between successive `places`,
//   which is a loop where a place is repeated.

function hops(name, count, places) {
  const width = drawnWidth(680);
  const x = (place) => 12 + (place / Math.max(1, count - 1)) * (width - 24);
  const height = (from, to) => Math.min(54, 6 + 0.3 * (x(to) - x(from)));
  const arcs = places.slice(1).map((to, at) => {
    const from = places[at];
    if (from === to) return svgElement("path", { class: "hop", d: `M${x(to)} 78C${x(to) - 26} 46 ${x(to) + 26} 46 ${x(to)} 78` });
    return svgElement("path", { class: "hop", d: `M${x(from)} 78C${x(from)} ${78 - 1.3 * height(from, to)} ${x(to)} ${78 - 1.3 * height(from, to)} ${x(to)} 78` });
  });
  const dots = Array.from({ length: count }, (_, place) => svgElement("circle", { class: places.includes(place) ? "visited" : "", cx: x(place), cy: 80, r: count > 40 ? 2.5 : 4 }));
  return svgElement("svg", { class: "hops", viewBox: `0 0 ${width} 92`, width, height: 92, role: "img", "aria-label": `${name}: ${places.length - 1} arcs` },
    ...arcs, ...dots, svgElement("text", { x: 4, y: 14 }, `${name}: ${places.length - 1}`));
}
