"use strict";
// Figures of the essay about outputs: probabilities and search, training, and costs.

const SMOOTHING = 0.1; // The paper's value.

async function wordsFigure() {
  const { ids, steps } = found.result;
  const names = targetWords();
  // The candidates that continue the best hypothesis at each step.
  const all = names.map((_, at) => (steps[at]?.candidates || []).filter((each) => each.ids.slice(0, -1).join() === ids.slice(0, at).join()));
  const share = (candidates, at) => Math.exp(candidates.find((each) => each.ids.at(-1) === ids[at])?.stepLogProb ?? 0);
  const shares = all.map(share);
  const weakest = shares.reduce((least, value, at) => (value < shares[least] ? at : least), 0);
  const at = chosenIndex("step", names.length);
  const others = vocabularySize("target") - 1;
  const smooth = all[at].map((each) => (each.ids.at(-1) === ids[at] ? 1 - SMOOTHING : SMOOTHING / others));
  const look = `Look at step ${weakest + 1}, ${bare(names[weakest])}: it has ${percent(shares[weakest])}, the lowest probability of the translation. At step ${at + 1}, ${bare(names[at])} has ${percent(shares[at])}.`;
  return [
    inThisModel(`the beam size is ${CONFIG.beamSize} and α is ${CONFIG.alpha}. The second column of bars is the target of label smoothing if the model's own translation were the correct one.`),
    wordChoice("Step", names, "step"),
    bars(`Most probable tokens at step ${at + 1}`, all[at].map((each) => each.name), [{ name: "model", values: all[at].map((each) => Math.exp(each.stepLogProb)) }, { name: "smoothed target", values: smooth }], { look, title: "token", most: 1, chosen: all[at].findIndex((each) => each.ids.at(-1) === ids[at]) }),
    searchTree("Beam search", found.result, { look: "Look at the boxes without a continuation: these hypotheses left the beam, because continuations of others were better.", beam: chosen.beam, alpha: chosen.alpha }),
    experiment("beam search finds better translations than the most probable token at each step.", compareBeams),
  ];
}

async function trainingFigure() {
  const { source, ids: written, translation, results } = found.result;
  const reference = chosen.reference || results[1]?.text || translation;
  const { ids } = await ask("read", reference, "target");
  const [tokens, own] = [await ask("score", source, ids), await ask("score", source, written)];
  const losses = tokens.map((each) => -each.logProb);
  const worst = indexOfLargest(losses);
  const mean = losses.reduce((sum, value) => sum + value, 0) / losses.length;
  const input = element("input", { type: "text", id: "essay-reference", value: reference, dir: "auto" });
  input.addEventListener("change", () => choose("reference", input.value));
  const before = (at, list = tokens) => (at ? list[at - 1].name : "(start)");
  const step = (list, at, name, logProb) => `${isolated(before(at, list))} \u2192 ${isolated(name)} (${percent(Math.exp(logProb))})`;
  const rows = Array.from({ length: Math.max(tokens.length, own.length) }, (_, at) => [String(at + 1),
    tokens[at] ? step(tokens, at, tokens[at].best, tokens[at].bestLogProb) : "", own[at] ? step(own, at, own[at].name, own[at].logProb) : ""]);
  const parting = tokens.findIndex(({ name, best }) => name !== best);
  const sides = tableOf("Token read \u2192 token predicted (its probability)", ["step", "teacher forcing", "generation"], rows);
  sides.querySelectorAll("tbody tr")[parting]?.classList.add("win");
  const part = parting < 0
    ? "Look at both columns: the model predicts every token of the reference, so both read the same. Change a word to see them part."
    : `Look at step ${parting + 1}: the model predicts ${bare(tokens[parting].best)}, the reference has ${bare(tokens[parting].name)}. In the next step, training reads the reference's token and generation its own.`;
  const look = `Look at ${bare(tokens[worst].name)}: its loss of ${number(losses[worst])} is the largest; the model gives it ${percent(Math.exp(-losses[worst]))}, and its best guess is ${bare(tokens[worst].best)}. The mean loss is ${number(mean)}.`;
  const peak = CONFIG.warmupSteps;
  const xs = Array.from({ length: 120 }, (_, at) => ((at + 1) * peak) / 30);
  const rate = (step) => paperRate(step, CONFIG.dModel, peak);
  return [
    element("label", { className: "field", htmlFor: "essay-reference" }, "Reference translation (at first the second result of the beam search; change a word, then press Enter)"), input,
    framed("Training and translation side by side", part, sides),
    bars("Loss of each token", tokens.map((each, at) => `${before(at)} \u2192 ${each.name}`), [{ name: "loss, nats", values: losses }], { look, title: "last token read \u2192 target", write: number, chosen: worst }),
    curves("Learning rate of equation 3", xs, [{ name: "rate", values: xs.map(rate) }], { look: `Look at the peak: with d_model = ${CONFIG.dModel} and ${whole(peak)} warm-up steps, the settings of this model, the rate is at most ${tickText(rate(peak))}.`, xTitle: "step", yTitle: "learning rate" }),
  ];
}

// Parts of the model and the beginnings or ends of the names of their weights.
const PARTS = [
  ["embeddings, softmax", /^(embedding|input_|target_|softmax)/],
  ["attention", /attention\//],
  ["feed-forward networks", /feed_forward\//],
  ["normalization", /norm\//],
];

async function costFigure() {
  const d = CONFIG.dModel;
  const n = found.result.source.length;
  const costs = [["self-attention, n² · d", (m) => m ** 2 * d], ["recurrent, n · d²", (m) => m * d ** 2], ["convolution, 3 · n · d²", (m) => 3 * m * d ** 2]];
  const xs = Array.from({ length: 101 }, (_, at) => (at * 2 * d) / 100);
  const now = costs.map(([, cost]) => cost(n));
  const sums = PARTS.map(() => 0);
  for (const [name, shape] of MODEL.index) {
    const part = PARTS.findIndex(([, pattern]) => pattern.test(name));
    if (part >= 0) sums[part] += shape.reduce((size, each) => size * each, 1);
  }
  const largest = indexOfLargest(sums);
  const total = sums.reduce((sum, value) => sum + value, 0);
  const ratio = now[1] / now[0];
  return [
    bars(`Multiplications of one layer for your sentence`, costs.map(([name]) => name), [{ name: `n = ${n}, d = ${d}`, values: now }], { look: `Look at the first two bars: for the ${n} tokens of your sentence, a recurrent layer needs ${number(ratio, 1)} times as many multiplications as self-attention.`, write: whole, title: "layer" }),
    curves("Multiplications by length", xs, costs.map(([name, cost]) => ({ name: name.split(",")[0], values: xs.map(cost) })), { look: `Look at n = ${d}: there self-attention and the recurrent layer cost the same.`, xTitle: "n, tokens", yTitle: "multiplications", write: whole }),
    bars("Parameters of this model", PARTS.map(([name]) => name), [{ name: "parameters", values: sums }], { look: `Look at the longest bar: the largest part, ${PARTS[largest][0]}, has ${percent(sums[largest] / total)} of all ${whole(total)} parameters.`, write: whole, title: "part" }),
  ];
}

const SOURCE_FIGURES = [whyFigure, vectorsFigure, lookupFigure, scalingFigure, headsFigure, blockFigure];

// Figures of the sections, and the parts of the runtime that compute them.
const FIGURES = {
  why: [whyFigure, scaledDotProductAttention],
  vectors: [vectorsFigure, Embedding],
  lookup: [lookupFigure, scaledDotProductAttention, softmax],
  scaling: [scalingFigure, scaledDotProductAttention, softmax],
  heads: [headsFigure, MultiHeadAttention],
  positions: [positionsFigure, sinusoidRates, sinusoid],
  block: [blockFigure, FeedForward, Residual],
  masks: [masksFigure, DecoderLayer],
  words: [wordsFigure, Decoder, logSumExp],
  training: [trainingFigure, Decoder],
  cost: [costFigure, product],
};
