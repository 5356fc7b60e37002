"use strict";
// Beam search with length penalty (section 6.1), equal to t2t_repro/decoding. Each step
// takes the 2 * beam best candidates. The best `beam` without EOS stay alive. Those with
// EOS are merged into the `beam` finished hypotheses with the best scores.

// ((5 + length) / 6)^alpha, by which log probabilities are divided (Wu et al. 2016).
const lengthPenalty = (length, alpha) => ((5 + length) / 6) ** alpha;

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

// Returns the best candidates that extend the hypotheses by one token. PAD is never
// allowed. If a token is prescribed, only this token is allowed. Probabilities are
// normalized over the whole vocabulary, including tokens that are not allowed.
function bestCandidates(logits, alive, count, prescribed) {
  const candidates = logits.flatMap((row, parent) => {
    const normaliser = logSumExp(row);
    const allowed = row.map((value, id) => ((prescribed === PAD ? id !== PAD : id === prescribed) ? value : -Infinity));
    return topK(allowed, count).map((id) => {
      const stepLogProb = allowed[id] - normaliser;
      return { parent, id, stepLogProb, logProb: alive[parent].logProb + stepLogProb };
    });
  });
  return topK(candidates.map((each) => each.logProb), count).map((at) => candidates[at]);
}

// Searches for the best translations of a sentence that begin with the ids in `prefix`.
// Returns {results, steps}: hypotheses {ids, logProb, score}, best first, and for each
// step its candidates, the alive hypotheses and the finished hypotheses.
function beamSearch(decoder, encoderOutput, { beamSize, alpha, limit, prefix = [] }) {
  let state = decoder.start(encoderOutput, beamSize);
  const nothing = { ids: [], logProb: -Infinity, score: -Infinity };
  let alive = Array.from({ length: beamSize }, (_, n) => (n ? nothing : { ids: [], logProb: 0, score: 0 }));
  let finished = Array(beamSize).fill(nothing);
  const steps = [];
  const count = beamSize > 1 ? 2 * beamSize : 1; // At most `beam` of them end in EOS.
  for (let length = 1, isDone = false; !isDone; length++) {
    const lastIds = alive.map(({ ids }) => (ids.length ? ids[ids.length - 1] : PAD));
    const logits = decoder.step(lastIds, length - 1, state);
    const penalty = lengthPenalty(length, alpha);
    const candidates = bestCandidates(logits, alive, count, prefix[length - 1] ?? PAD).map((each) => ({
      ...each,
      ids: [...alive[each.parent].ids, each.id],
      score: each.logProb / penalty,
    }));
    const going = candidates.map((each) => (each.id === EOS ? -Infinity : each.logProb));
    const chosen = topK(going, beamSize).map((at) => ({ ...candidates[at], logProb: going[at] }));
    while (chosen.length < beamSize) chosen.push({ ...nothing, parent: 0, ids: [EOS] });
    const ended = candidates.filter((each) => each.id === EOS);
    const rivals = [...finished, ...ended];
    finished = topK(rivals.map((each) => each.score), beamSize).map((at) => rivals[at]);
    // Log probabilities never increase: this is an upper bound of all future scores.
    const reachable = chosen[0].logProb / lengthPenalty(limit, alpha);
    isDone = length >= limit || finished[0].score >= reachable;
    state = decoder.selectBeams(state, chosen.map((each) => each.parent));
    alive = chosen;
    const exists = (each) => each.logProb > -Infinity;
    steps.push({ candidates: candidates.filter(exists), alive: alive.filter(exists), finished: finished.filter(exists) });
  }
  // Without finished hypotheses, the alive ones are the result.
  const results = finished[0].score > -Infinity ? finished : alive;
  return { results: results.filter((each) => each.logProb > -Infinity), steps };
}
