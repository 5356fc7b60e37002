"use strict";
// Experiments of the essay: claims of the paper, tested in this page with the test sentences.

const outcomes = new Map(); // The outcome of each experiment that has been run.

// A button that runs an experiment; `run` returns a sentence with the outcome.
function experiment(claim, run) {
  const outcome = element("p", { role: "status" }, outcomes.get(claim) || "");
  const count = MODEL.sentences.length;
  const button = element("button", { type: "button", hidden: !count }, `Test it with ${count} ${count === 1 ? "sentence" : "sentences"}`);
  button.addEventListener("click", async () => {
    button.disabled = true;
    outcome.textContent = "The model is translating \u2026";
    outcomes.set(claim, await run());
    outcome.textContent = outcomes.get(claim);
    button.disabled = false;
  });
  return element("div", { className: "experiment" }, element("p", {}, element("b", {}, "Claim: "), claim), button, outcome);
}

// Compares the complete model with a changed one (see NO_CHANGES in the runtime).
async function compareModels(changes) {
  let [same, tokens, before, after] = [0, 0, 0, 0];
  const sum = (scores) => scores.reduce((total, each) => total + each.logProb, 0);
  for (const text of MODEL.sentences) {
    const { source, ids, translation } = await ask("translate", text);
    same += (await ask("translate", text, { changes })).translation === translation;
    before += sum(await ask("score", source, ids));
    after += sum(await ask("score", source, ids, changes));
    tokens += ids.length;
  }
  const loss = (total) => number(-total / tokens, 2);
  return `${same} of ${MODEL.sentences.length} translations stay the same. With the complete model's translations as references, the mean loss of a token is ${loss(after)} instead of ${loss(before)}.`;
}

// Compares the largest weights of the queries of all attentions with and without scaling.
async function compareSaturation() {
  let [count, scaled, unscaled] = [0, 0, 0];
  for (const text of MODEL.sentences) {
    const { source, ids } = await ask("translate", text);
    const seen = await ask("inspect", source, ids);
    for (const { weights, masked } of ATTENTIONS.flatMap((name) => seen[`${name}/steps`].flat())) {
      count++;
      scaled += Math.max(...weights);
      unscaled += Math.max(...softmax(masked.map((value) => value * Math.sqrt(CONFIG.dK))));
    }
  }
  return `On average, the largest weight of a query is ${percent(unscaled / count)} without the division and ${percent(scaled / count)} with it. ${await compareModels({ unscaled: true })}`;
}

// Compares beam search with the choice of the most probable token at each step.
async function compareBeams() {
  let [same, greedy, beam] = [0, 0, 0];
  for (const text of MODEL.sentences) {
    const wide = await ask("translate", text);
    const narrow = await ask("translate", text, { beamSize: 1 });
    same += wide.translation === narrow.translation;
    beam += wide.score;
    greedy += narrow.score;
  }
  const count = MODEL.sentences.length;
  return `${same} of ${count} translations stay the same with a beam of 1. The mean score is ${number(greedy / count, 4)} instead of ${number(beam / count, 4)}.`;
}

const ATTENTIONS = [
  ...Array.from({ length: CONFIG.layers }, (_, n) => `encoder/layer_${n}/self_attention`),
  ...Array.from({ length: CONFIG.decoderLayers }, (_, n) => [`decoder/layer_${n}/self_attention`, `decoder/layer_${n}/cross_attention`]).flat(),
];
const otherHeads = () => ATTENTIONS.flatMap((name) => Array.from({ length: CONFIG.heads - 1 }, (_, n) => `${name}/${n + 1}`));
const residuals = () => [...ATTENTIONS, ...ATTENTIONS.filter((name) => name.endsWith("self_attention")).map((name) => name.replace("self_attention", "feed_forward"))].map((name) => `${name}_residual`);
