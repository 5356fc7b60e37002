"use strict";
// The best continuations of a sentence's hypotheses, equal to t2t_repro/decoding/candidates.py.

// Returns the indices of the k largest values; ties are broken by index.
function topK(values, k) {
  const best = [];
  for (let at = 0; at < values.length; at++) {
    if (best.length === k && values[at] <= values[best[k - 1]]) continue;
    let place = best.length;
    while (place > 0 && values[best[place - 1]] < values[at]) place--;
    best.splice(place, 0, at);
    if (best.length > k) best.pop();
  }
  return best;
}

// Sets the probability of EOS to 1.
const onlyEos = (logits) => logits.map((row) => row.map((value, id) => (id === EOS ? 0 : -Infinity)));

// Returns the best candidates that extend the hypotheses by one token, of which only
// those in `isAllowed` are taken. Probabilities are normalized over the whole vocabulary,
// including tokens that are not allowed.
function bestCandidates(logits, alive, count, isAllowed) {
  const candidates = logits.flatMap((row, parent) => {
    const normaliser = logSumExp(row);
    const allowed = row.map((value, id) => (isAllowed(id) ? value : -Infinity));
    return topK(allowed, count).map((id) => {
      const stepLogProb = allowed[id] - normaliser;
      return { parent, id, stepLogProb, logProb: alive[parent].logProb + stepLogProb };
    });
  });
  return topK(candidates.map((each) => each.logProb), count).map((at) => candidates[at]);
}
