"use strict";
// Ablations: disables parts of the model and shows the effect on the translation.

// Returns the ablations as [key, title, changes to the model]; see NO_CHANGES.
function switches() {
  const list = [
    ["unscaled", "no scaling by √dₖ", { unscaled: true }],
    ["noPositions", "no positional encoding", { noPositions: true }],
    ["noCausalMask", "no causal mask (only in teacher forcing)", { noCausalMask: true }],
  ];
  const add = (side, layers, kinds) => {
    for (let n = 0; n < layers; n++) {
      for (const kind of kinds) {
        const name = `${side}/layer_${n}/${kind}`;
        list.push([`${name}_residual`, `${side} layer ${n + 1}: no residual around ${kind.replace("_", " ")}`, { residuals: [`${name}_residual`] }]);
        if (kind === "feed_forward") continue;
        for (let head = 0; head < CONFIG.heads; head++) {
          list.push([`${name}/${head}`, `${side} layer ${n + 1}: head ${head + 1} of ${kind.replace("_", " ")} disabled`, { heads: [`${name}/${head}`] }]);
        }
      }
    }
  };
  add("encoder", CONFIG.layers, ["self_attention", "feed_forward"]);
  add("decoder", CONFIG.decoderLayers, ["self_attention", "cross_attention", "feed_forward"]);
  return list;
}

function changesOf(off) {
  const merged = { heads: [], residuals: [] };
  for (const [key, , change] of switches()) {
    if (!off.includes(key)) continue;
    for (const [name, value] of Object.entries(change)) merged[name] = Array.isArray(value) ? [...merged[name], ...value] : value;
  }
  return merged;
}

async function whatIfView(into, redraw) {
  const { source, translation } = found.result;
  if (!source.length) return into.append(paragraph("Type a sentence."));
  const off = chosen.off ? chosen.off.split(",") : [];
  const reference = chosen.reference || translation;
  const changes = changesOf(off);
  const { ids: target, unread } = await ask("read", reference, "target");
  const changed = await ask("translate", chosen.text, { beamSize: chosen.beam, alpha: chosen.alpha, prefix: found.prefix, changes });
  const seen = await ask("inspect", source.slice(0, MOST_SHOWN), found.result.ids.slice(0, MOST_SHOWN), changes);
  const attention = chosenAttention(seen);
  const [before, after] = [await ask("score", source, target), await ask("score", source, target, changes)];
  const total = (symbols) => symbols.reduce((sum, each) => sum + each.logProb, 0);
  const all = switches();
  const add = choice("Disable", [["", "choose …"], ...all.filter(([key]) => !off.includes(key)).map(([key, title]) => [key, title])], "", (key) => {
    chosen.off = [...off, key].filter(Boolean).join();
    redraw();
  });
  const removed = off.map((key) => {
    const button = element("button", { type: "button", title: "Enable again" }, `${(all.find(([name]) => name === key) || ["", key])[1]} ✕`);
    button.addEventListener("click", () => {
      chosen.off = off.filter((each) => each !== key).join();
      redraw();
    });
    return button;
  });
  const given = element("input", { type: "text", id: "reference", value: reference, dir: "auto" });
  given.addEventListener("change", () => {
    chosen.reference = given.value;
    redraw();
  });
  const choose = (name, convert) => (value) => {
    chosen[name] = convert(value);
    redraw();
  };
  const losses = (symbols) => symbols.map((each) => -each.logProb);
  into.append(
    heading("What if …"),
    paragraph("Disable parts of the model and compare the translations. The model was trained with all of its parts, so the largest effects show which parts it relies on."),
    element("div", { className: "controls" }, add, ...removed),
    tableOf("Complete and changed model", ["model", "translation", "log probability of the reference"], [
      ["complete", found.result.translation, number(total(before))],
      ["changed", changed.translation || "(empty)", number(total(after))],
    ]),
    heading("Teacher forcing: the loss of each token"),
    element("label", { className: "field", htmlFor: "reference" }, "Reference translation"), given,
    element("p", { hidden: !unread }, `${unreadNote("The reference", unread)}.`),
    paragraph("During training, the decoder reads the reference translation, shifted right by one position, and predicts all tokens in parallel, each from the preceding tokens of the reference. The loss of a token is the negative logarithm of its probability."),
    bars("Loss of each token of the reference, in nats", before.map(({ name }, at) => `${at + 1} ${name}`), [{ name: "complete model", values: losses(before) }, { name: "changed model", values: losses(after) }],
      { title: "target", write: number, look: worstLoss(before, after) }),
    folded("Predictions as a table", () => tableOf("Inputs and predictions of the complete model", ["input", "target", "prediction", "loss", "loss, changed model"], before.map((each, at) => [at ? before[at - 1].name : "(start)", each.name, `${isolated(each.best)} (${percent(Math.exp(each.bestLogProb))})`, number(-each.logProb), number(-after[at].logProb)]))),
    heading("Attention of the changed model"),
    paragraph("The changed model reads the text and the translation of the complete model. The other views always show the complete model."),
    element("div", { className: "controls" }, ...attentionControls(attention, choose).slice(0, 2)),
    attentionArcs(off.length ? "Weights of the changed model" : "Weights of the complete model", attention, off.length ? "Compare with the same layer in the view “Attention in numbers”. A disabled head still has weights, but its output is replaced by zeros." : "Nothing is disabled yet."),
  );
}

// Returns a sentence about the token whose loss changes most.
function worstLoss(before, after) {
  const changes = before.map((each, at) => each.logProb - after[at].logProb);
  const at = changes.indexOf(Math.max(...changes));
  if (changes[at] < 0.0005) return "Disable a part to see the losses change.";
  return `Look at token ${at + 1}, ${quoted(before[at].name)}: its loss rises by ${number(changes[at])}, so its probability falls from ${percent(Math.exp(before[at].logProb))} to ${percent(Math.exp(after[at].logProb))}.`;
}
