"use strict";
// Runs the model in a web worker, so that the page stays responsive.

// Handles the page's messages {id, method, values}. The first one loads the model.
function serve(scope) {
  let translator;
  const methods = {
    load(model) {
      const weights = readWeights(model.index, new Uint8Array(model.weights));
      translator = new Translator(new Transformer(model.config, weights), new Tokenizer(model.tokenizer));
    },
    // Returns the source's tokens and the encoder's tensors of the first `most` ones.
    encode(text, most) {
      const { ids } = translator.readSource(text);
      const source = ids.slice(0, most);
      return { source, names: source.map(nameOf(translator.tokenizer.source)), tensors: translator.model.encode(source).tensors };
    },
    translate: (text, options) => withNames(translator.translate(text, options)),
    read: (text, side) => translator.read(text, side),
    inspectDecoder: (source, target) => translator.model.inspectDecoder(source, target),
    inspect: (source, target, changes) => translator.model.withChanges(changes, () =>
      ({ ...translator.model.encode(source).tensors, ...translator.model.inspectDecoder(source, target) })),
    decodeEach: (ids) => ids.map((id) => translator.decode([id])),
    // Returns the log probability and the most likely alternative of each reference token.
    score(source, target, changes) {
      const logits = translator.model.withChanges(changes, () => translator.model.logits(source, target));
      return logits.map((row, at) => {
        const normaliser = logSumExp(row);
        const [best] = topK(row, 1);
        const { names } = translator.tokenizer.target;
        return { name: names[target[at]], logProb: row[target[at]] - normaliser, best: names[best], bestLogProb: row[best] - normaliser };
      });
    },
  };
  const nameOf = ({ names }) => (id) => names[id] ?? `<${id}>`;
  const withNames = (found) => {
    const { source, target } = translator.tokenizer;
    const name = nameOf(target);
    const named = (each) => ({ ...each, text: translator.decode(each.ids), name: name(each.ids.at(-1)) });
    const steps = found.steps.map(({ candidates, alive, finished }) => ({
      candidates: candidates.map(named), alive: alive.map(named), finished: finished.map(named),
    }));
    return { ...found, steps, sourceNames: found.source.map(nameOf(source)), names: found.ids.map(name), results: found.results.map(named) };
  };
  scope.onmessage = ({ data: { id, method, values } }) => {
    try {
      scope.postMessage({ id, answer: methods[method](...values) });
    } catch (error) {
      scope.postMessage({ id, error: String(error) });
    }
  };
}
