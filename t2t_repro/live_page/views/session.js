"use strict";
// The worker that runs the model, and the user's choices, which are also part of the page's address.

const MODEL = JSON.parse(document.getElementById("model").textContent);
const CONFIG = MODEL.config;

const worker = (() => {
  // The worker runs the source text of the runtime element, so the file contains it only once.
  const source = `${document.getElementById("runtime").textContent}\nserve(self);`;
  return new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
})();
const waiting = new Map();
let asked = 0;

function ask(method, ...values) {
  const transfer = method === "load" ? [values[0].weights] : [];
  return new Promise((resolve, reject) => {
    waiting.set(++asked, { resolve, reject });
    worker.postMessage({ id: asked, method, values }, transfer);
  });
}

worker.onmessage = ({ data: { id, answer, error } }) => {
  const { resolve, reject } = waiting.get(id);
  waiting.delete(id);
  if (error) reject(new Error(error));
  else resolve(answer);
};

// Decodes the weights in slices, so that the page is drawn and shows the progress.
async function loadModel() {
  const { weights } = MODEL;
  MODEL.weights = null; // Frees megabytes of base64.
  const progress = document.getElementById("loading");
  const bytes = new Uint8Array((weights.length / 4) * 3 - (/=*$/.exec(weights)[0].length));
  const slice = 2 ** 22; // Four characters encode three bytes.
  for (let at = 0; at < weights.length; at += slice) {
    bytes.set(bytesOf(weights.slice(at, at + slice)), (at / 4) * 3);
    progress.value = (at + slice) / weights.length;
    await new Promise((resolve) => setTimeout(resolve));
  }
  await ask("load", { ...MODEL, weights: bytes.buffer });
  progress.hidden = true;
}

const loaded = loadModel();

// Public interface: resolves to {translation, score, tokens, unread, pieces}.
window.transformer = {
  async translate(text, options = {}) {
    await loaded;
    const { translation, score, tokens, unread, names } = await ask("translate", text, options);
    return { translation, score, tokens, unread, pieces: names };
  },
};

const DEFAULTS = { view: "essay", section: "", from: 0, to: 7, step: 0, text: document.getElementById("text").value, beam: CONFIG.beamSize, alpha: CONFIG.alpha, kind: "decoder/cross", masks: "decoder/self", layer: 0, head: 0, word: 2, block: "encoder/self_attention", reference: "", off: "", pos: 3, k: 5, pair: 0 };
const MOST_BEAM = Math.max(8, CONFIG.beamSize);
const chosen = { ...DEFAULTS };

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const [key, value] of given) {
    if (!Object.hasOwn(DEFAULTS, key)) continue;
    const at = Math.max(0, Number(value) || 0);
    chosen[key] = typeof DEFAULTS[key] === "string" ? value : key === "alpha" ? at : Math.round(at);
  }
  for (const [key, most] of [["pos", 100], ["k", 50], ["pair", CONFIG.dModel], ["beam", MOST_BEAM]]) chosen[key] = Math.min(chosen[key], most);
  chosen.beam ||= 1;
}

function writeAddress() {
  const changed = Object.entries(chosen).filter(([key, value]) => value !== DEFAULTS[key]);
  history.replaceState(null, "", `#${new URLSearchParams(changed)}`);
}

// The model's output for the current text: `source` of the encoder and `result` of the search.
// The tensors of the decoder are computed when a view needs them.
const found = { prefix: [], source: null, result: null, tensors: null };

// While a request is being processed, only the newest of the following requests is kept. Calls
// `drawSource` while the model is searching, and `draw` after the last search.
let isBusy = false, isWanted = false;
async function retranslate(draw, drawSource = () => {}) {
  isWanted = true;
  if (isBusy) return;
  isBusy = true;
  while (isWanted) {
    isWanted = false;
    const options = { beamSize: chosen.beam, alpha: chosen.alpha, prefix: found.prefix };
    const encoded = ask("encode", chosen.text, MOST_SHOWN);
    const translated = ask("translate", chosen.text, options);
    found.source = await encoded;
    drawSource();
    found.result = { ...(await translated), encoded: found.source };
    found.tensors = null;
  }
  isBusy = false;
  draw();
}

const MOST_SHOWN = 96; // Maximum number of tokens per side whose tensors are shown.
function shownNote() {
  const most = Math.max(found.result.source.length, found.result.ids.length);
  return element("p", { className: "quiet", hidden: most <= MOST_SHOWN }, `Only the first ${MOST_SHOWN} tokens of the text and of the translation are shown.`);
}

async function tensors() {
  while (!found.tensors) {
    const { result } = found;
    const { source, tensors: ofEncoder } = result.encoded;
    const ofDecoder = await ask("inspectDecoder", source, result.ids.slice(0, MOST_SHOWN));
    if (found.result === result) found.tensors = { ...ofEncoder, ...ofDecoder }; // Otherwise the text has changed.
  }
  return found.tensors;
}
