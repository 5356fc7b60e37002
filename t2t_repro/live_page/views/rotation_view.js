"use strict";
// PE(pos + k) is PE(pos) with each pair of channels rotated by k times its rate (section 3.5).

const MOST_CIRCLES = 6;

// Returns evenly spaced pairs, from the chosen one to the slowest.
function spreadPairs(first, count) {
  const step = (count - 1 - first) / (MOST_CIRCLES - 1);
  return [...new Set(Array.from({ length: MOST_CIRCLES }, (_, n) => Math.round(first + n * step)))];
}

// Returns the point (cosine, sine) of a pair in a positional encoding.
function pointOf(signal, pair) {
  const count = Math.floor(CONFIG.dModel / 2);
  const [sine, cosine] = CONFIG.position === "sinusoid_paper" ? [2 * pair, 2 * pair + 1] : [pair, count + pair];
  return [signal[cosine], signal[sine]];
}

const turned = ([x, y], angle) => [x * Math.cos(angle) - y * Math.sin(angle), x * Math.sin(angle) + y * Math.cos(angle)];

// The y axis of SVG points downwards, so sines are negated.
function circle(label, before, after, angle) {
  const [from, to] = [before, after].map(([x, y]) => `${100 * x} ${-100 * y}`);
  const rest = angle % (2 * Math.PI);
  const inner = [before, after].map(([x, y]) => `${40 * x} ${-40 * y}`);
  return svgElement("svg", { viewBox: "-115 -115 230 230", role: "img", "aria-label": label },
    svgElement("circle", { class: "axis", r: 100 }),
    svgElement("path", { class: "axis", d: "M-110 0H110M0 -110V110" }),
    svgElement("path", { class: "before", d: `M0 0L${from}` }),
    svgElement("path", { class: "after", d: `M0 0L${to}` }),
    svgElement("path", { class: "turn", d: `M${inner[0]}A40 40 0 ${rest > Math.PI ? 1 : 0} 0 ${inner[1]}` }),
    svgElement("circle", { class: "before", cx: 100 * before[0], cy: -100 * before[1], r: 7 }),
    svgElement("circle", { class: "after", cx: 100 * after[0], cy: -100 * after[1], r: 7 }));
}

function rotationPart() {
  const rates = sinusoidRates(CONFIG.dModel, CONFIG.position);
  const last = rates.length - 1;
  const shown = element("div", {});
  const point = ([x, y]) => `(${number(x, 4)}, ${number(y, 4)})`;
  const draw = () => {
    const [pos, k] = [chosen.pos, chosen.k];
    const [here, there] = [pos, pos + k].map((at) => sinusoid(at, CONFIG.dModel, CONFIG.position));
    const pairs = spreadPairs(Math.min(chosen.pair, last), rates.length);
    const rows = pairs.map((pair) => {
      const angle = k * rates[pair];
      const [before, after] = [pointOf(here, pair), pointOf(there, pair)];
      return { pair, angle, before, after, told: `${number((angle * 180) / Math.PI, 2)}°` };
    });
    shown.replaceChildren(
      element("ul", { className: "circles" }, ...rows.map(({ pair, angle, before, after, told }) =>
        element("li", {}, circle(`Pair ${pair}: position ${pos} at ${point(before)}, position ${pos + k} at ${point(after)}, rotated by ${told}`, before, after, angle), `pair ${pair}: ${told}`))),
      tableOf(`Position ${pos} rotated to position ${pos + k}; points are (cosine, sine)`, ["pair", "ω, radians", "k·ω", `PE(${pos})`, `rotated by k·ω`, `PE(${pos + k})`],
        rows.map(({ pair, angle, before, after, told }) => [String(pair), rates[pair].toPrecision(4), told, point(before), point(turned(before, angle)), point(after)])));
  };
  const change = (key) => (value) => {
    chosen[key] = value;
    writeAddress();
    draw();
  };
  draw();
  return [
    heading("Relative positions as rotations"),
    formula(`PE(pos + k) = R(k·ω) PE(pos), R(a) = (cos a, −sin a; sin a, cos a); ${RATES[CONFIG.position]}`),
    paragraph("Each pair of channels, cosine and sine of pos·ω, is a point on a circle. Moving by k positions rotates it by k·ω, independent of pos. This linear map depends only on k, which allows attention by relative position. The first pairs rotate fast, the last ones very slowly. Position pos is gray, position pos + k is blue."),
    element("div", { className: "controls" },
      slider("pos", { min: 0, max: 100, step: 1, value: chosen.pos }, change("pos")),
      slider("k", { min: 0, max: 50, step: 1, value: chosen.k }, change("k")),
      slider("first pair", { min: 0, max: last, step: 1, value: Math.min(chosen.pair, last) }, change("pair"))),
    shown,
  ];
}
