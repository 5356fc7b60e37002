"use strict";
// Figure 1 of the paper: both stacks with residual connections and the sources of Q, K and V.
//
// figureOne(redraw) -> <svg> whose blocks are buttons; redraw(id) is called after a choice.
// tokenPath(svg, blocks, tellAt) -> controls that move a dot along the blocks; tellAt(at) is the text.

const [BLOCK_WIDTH, BLOCK_HEIGHT, ROW_STEP] = [164, 30, 58];
const placeOf = (column, row) => [34 + column * 224, 560 - row * ROW_STEP];

const flow = (d) => svgElement("path", { class: "flow", d });
const arrowUp = (x, y) => flow(`M${x - 4} ${y + 6}L${x} ${y}L${x + 4} ${y + 6}`);
const writing = (x, y, text, className = "note") => svgElement("text", { class: className, x, y, "aria-hidden": "true" }, text);

// Lines into an attention from the block below: keys, values and queries, or only the queries.
function attentionInputs(column, row, isCross) {
  const [x, y] = placeOf(column, row);
  const [v, k, q] = [x + 32, x + 82, x + 132];
  const foot = y + BLOCK_HEIGHT;
  const made = [v, k, q].map((each) => arrowUp(each, foot));
  const names = [[v, "V"], [k, "K"], [q, "Q"]].map(([at, name]) => writing(at + 7, foot + 11, name));
  if (isCross) {
    const [fromX, fromY] = placeOf(0, 5);
    made.push(flow(`M${fromX + 82} ${fromY}v-16H228V${foot + 14}H${k}V${foot}M${v} ${foot + 14}V${foot}`), flow(`M${q} ${foot + ROW_STEP - BLOCK_HEIGHT}V${foot}`));
  } else made.push(flow(`M${k} ${foot + ROW_STEP - BLOCK_HEIGHT}V${foot}M${v} ${foot}v14H${q}V${foot}`));
  return [...made, ...names];
}

// The connection around the sub-layer in `row`, into the block above it.
function residual(column, row, isCross) {
  const [x, y] = placeOf(column, row);
  const start = y + ROW_STEP - 6;
  const from = x + (isCross ? 132 : 82);
  const [outer, edge, tip] = column ? [x + BLOCK_WIDTH + 14, x + BLOCK_WIDTH, 6] : [x - 14, x, -6];
  const to = y - ROW_STEP + BLOCK_HEIGHT / 2;
  return flow(`M${from} ${start}H${outer}V${to}H${edge}M${edge + tip} ${to - 4}L${edge} ${to}L${edge + tip} ${to + 4}`);
}

function blockButton([block, title, column, row], redraw) {
  const [x, y] = placeOf(column, row);
  const button = svgElement("g", { role: "button", tabindex: 0, "aria-pressed": String(chosen.block === block), "aria-label": `${block.split("/")[0]}: ${title}`, id: `block-${block.replace("/", "-")}` },
    svgElement("rect", { x, y, width: BLOCK_WIDTH, height: BLOCK_HEIGHT, rx: 5, class: block.replace(/.*_(attention|residual|forward)$|.*/, "$1") }), svgElement("text", { x: x + BLOCK_WIDTH / 2, y: y + 20 }, title));
  const choose = () => {
    chosen.block = block;
    redraw(button.id);
  };
  button.addEventListener("click", choose);
  button.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose();
  });
  return button;
}

function figureOne(redraw) {
  const svg = svgElement("svg", { id: "figure", viewBox: "0 10 456 610", role: "group", "aria-label": "The model's architecture (figure 1)" });
  for (const [column, to, count] of [[0, 5, CONFIG.layers], [1, 7, CONFIG.decoderLayers]]) {
    const [left, top] = placeOf(column, to);
    svg.append(svgElement("rect", { class: "stack", x: left - 20, y: top - 8, width: BLOCK_WIDTH + 40, height: (to - 2) * ROW_STEP + BLOCK_HEIGHT + 34, rx: 8 }),
      writing(left - 12, top - 14, `${count} ×`, "times"));
  }
  for (const [, , column, row] of BLOCKS) {
    const [x, y] = placeOf(column, row);
    const isAttention = row === 2 || (column === 1 && row === 4);
    const foot = y + BLOCK_HEIGHT;
    if (isAttention) svg.append(...attentionInputs(column, row, row === 4));
    else svg.append(flow(`M${x + 82} ${foot + (row ? ROW_STEP - BLOCK_HEIGHT : 14)}V${foot}`), arrowUp(x + 82, foot));
    if (row >= 2 && row % 2 === 0 && row < 8) svg.append(residual(column, row, column === 1 && row === 4));
  }
  const [source, target] = [placeOf(0, 0), placeOf(1, 0)].map(([x, y]) => [x + 82, y + BLOCK_HEIGHT + 27]);
  svg.append(writing(...source, "inputs: the source"), writing(...target, "outputs, shifted right by one"), writing(placeOf(1, 9)[0] + 82, placeOf(1, 9)[1] - 8, "probabilities of the next token"),
    ...BLOCKS.map((each) => blockButton(each, redraw)), svgElement("circle", { class: "token", r: 7, visibility: "hidden" }));
  return svg;
}

function tokenPath(svg, blocks, tellAt) {
  const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const told = element("output", { className: "told" }, "");
  const token = svg.querySelector(".token");
  let [at, timer] = [-1, null];
  const stop = () => {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  };
  const go = (next) => {
    at = (next + blocks.length) % blocks.length;
    const [, , column, row] = BLOCKS.find(([name]) => name === blocks[at]);
    const [x, y] = placeOf(column, row);
    token.setAttribute("visibility", "visible");
    token.style.transform = `translate(${x + BLOCK_WIDTH / 2}px, ${y}px)`;
    told.textContent = `${at + 1} of ${blocks.length}. ${tellAt(at)}`;
  };
  const button = (text, act) => {
    const made = element("button", { type: "button" }, text);
    made.addEventListener("click", act);
    return made;
  };
  const play = button("Play", () => {
    if (timer) return stop();
    play.textContent = "Stop";
    go(at + 1);
    timer = setInterval(() => (svg.isConnected && at < blocks.length - 1 ? go(at + 1) : stop()), 1200);
  });
  // Nothing moves by itself for those who prefer reduced motion.
  play.hidden = isStill;
  const step = (change) => () => {
    stop();
    go(at < 0 ? 0 : at + change);
  };
  return element("div", { className: "token-path" }, element("div", { className: "controls" }, play, button("Previous block", step(-1)), button("Next block", step(1))), told);
}
