"use strict";
// Figures of the essay about vectors: embeddings, positions and the layers of the encoder.

const rowsOf = (name) => MODEL.index.find(([each]) => each === name)?.[1][0];
const vocabularySize = (side) => rowsOf("embedding/table") || rowsOf(`${side}_embedding/table`);

function vectorsFigure() {
  const vectors = found.source.tensors["input/embedded"];
  const names = sourceWords();
  const rows = vectors.map((a) => vectors.map((b) => dot(a, 0, b, 0, a.length) / (sizeOf(a) * sizeOf(b))));
  let [one, two] = [0, names.length - 1];
  rows.forEach((row, a) => row.forEach((value, b) => {
    if (a < b && value > rows[one][two]) [one, two] = [a, b];
  }));
  const others = rows.flatMap((row, a) => row.filter((_, b) => b !== a));
  const mean = others.reduce((sum, value) => sum + value, 0) / Math.max(1, others.length);
  const look = names.length < 2 ? "" : `Look at row ${bare(names[one])}: its embedding is most similar to that of ${bare(names[two])}, with a cosine of ${number(rows[one][two], 2)}. The mean of all pairs of tokens is ${number(mean, 2)}.`;
  return [
    inThisModel(`the vocabulary has ${whole(vocabularySize("input"))} entries and d_model is ${CONFIG.dModel}. Embeddings are ${CONFIG.scaleEmbeddings ? "" : "not "}multiplied by √d_model.`),
    matrix("Cosines of the embeddings", rows, { look, rowNames: names, columnNames: names, rowTitle: "token", columnTitle: "token", most: 1, chosen: one, write: (value) => number(value, 2) }),
  ];
}

const POSITION_KINDS = {
  sinusoid: "the sines and cosines of tensor2tensor, the authors' program. All sines precede all cosines, and the longest wavelength is exactly 10,000 · 2π.",
  sinusoid_halves: "sines and cosines with the paper's wavelengths; all sines precede all cosines.",
  sinusoid_paper: "the paper's sines and cosines.",
  learned: "a learned vector for each position.",
  none: "no positional encoding, so that the experiment changes nothing.",
};

async function positionsFigure() {
  const text = chosen.text.trim();
  const reversed = text.split(/\s+/).reverse().join(" ");
  const options = { beamSize: chosen.beam, alpha: chosen.alpha };
  const translate = (each, changes) => ask("translate", each, { ...options, changes });
  const without = { noPositions: true };
  const plain = [await translate(text), await translate(reversed)];
  const blind = [await translate(text, without), await translate(reversed, without)];
  const sorted = (each) => [...each.source].sort((a, b) => a - b).join();
  const same = sorted(plain[0]) === sorted(plain[1]);
  const look = `Look at the last column: without positions, both texts get ${blind[0].translation === blind[1].translation ? "the same translation" : "different translations"}.${same ? "" : " The reversed text consists of other tokens, so the experiment is not exact."}`;
  const rows = [text, reversed].map((each, at) => [each, plain[at].translation, blind[at].translation]);
  return [
    inThisModel(POSITION_KINDS[CONFIG.position] || CONFIG.position),
    framed("Without positions the order is lost", look, tableOf("Translations", ["text", "with positions", "without positions"], rows)),
    matrix("The vectors that are added", found.result.encoded.tensors["input/positions"], { look: "Each row differs from all others.", rowNames: found.result.encoded.names, rowTitle: "token", columnTitle: "channel" }),
    experiment("without positions, the order is lost.", () => compareModels({ noPositions: true })),
  ];
}

const MOST_UNITS = 12;

function blockFigure() {
  const seen = found.source.tensors;
  const names = sourceWords();
  const layer = chosenIndex("layer", CONFIG.layers);
  const word = chosenIndex("word", names.length);
  const at = (name) => seen[`encoder/layer_${layer}/${name}`];
  const hidden = at("feed_forward/hidden");
  const units = topK(hidden[word], MOST_UNITS);
  const active = hidden[word].filter((value) => value > 0).length;
  const sharing = hidden.filter((row) => row[units[0]] > 0).length;
  const look = `Look at row ${bare(names[word])}: ${active} of ${hidden[word].length} units are active. The columns are its ${units.length} most active ones. The first, unit ${units[0] + 1}, is active for ${sharing} of ${names.length} tokens.`;
  const input = layer ? seen[`encoder/layer_${layer - 1}/feed_forward_residual/output`] : seen["input/output"];
  const middle = at("self_attention_residual/output");
  const sizes = [[input, at("self_attention/output")], [middle, at("feed_forward/output")]].map((pair) => pair.map((rows) => sizeOf(rows[word])));
  const more = sizes.map(([x, y]) => y / x);
  const told = `Look at the second bar of each row: for ${bare(names[word])}, self-attention adds a vector of ${number(more[0], 2)} times the size of its input, the feed-forward network one of ${number(more[1], 2)} times.`;
  return [
    inThisModel(`${CONFIG.layers} layers in the encoder and ${CONFIG.decoderLayers} in the decoder, ${whole(hidden[word].length)} hidden units, and ${CONFIG.norm === "pre" ? "normalization before each sub-layer (pre-norm)" : "normalization after each sum, as in the paper"}.`),
    wordChoice("Token", names, "word"), controls(counted("layer", CONFIG.layers, "layer")),
    matrix("Hidden units of the feed-forward network", hidden.map((row) => units.map((unit) => row[unit])), { look, rowNames: names, columnNames: units.map((unit) => String(unit + 1)), rowTitle: "token", columnTitle: "unit", chosen: word }),
    bars("Sizes of the vectors (square root of the sum of squares)", ["self-attention", "feed-forward"], ["input", "output"].map((name, n) => ({ name, values: sizes.map((pair) => pair[n]) })), { look: told, title: "sub-layer", write: (value) => number(value, 1) }),
    experiment("the layers need their residual connections. (The experiment removes all of them.)", () => compareModels({ residuals: residuals() })),
  ];
}
