"use strict";
// Beam search (section 6.1), equal to t2t_repro/decoding/algorithms.

const NOTHING = { ids: [], logProb: -Infinity, score: -Infinity }; // A missing hypothesis.

// tensor2tensor's search, and the base class of the others. Each step takes the 2 * beam
// best candidates. The best `beam` without EOS stay alive. Those with EOS are merged into
// the `beam` finished hypotheses with the best scores.
class T2TSearch {
  // wordPenalty: subtracted from the log probability for each token; never: ids of tokens
  // that are never produced.
  constructor({ beamSize, alpha, wordPenalty, never }) {
    Object.assign(this, { beamSize, alpha, wordPenalty, never: [PAD, ...never] });
  }

  // At most `beam` of the candidates end in EOS. Greedy search (beam 1) takes only one.
  get numCandidates() {
    return this.beamSize > 1 ? 2 * this.beamSize : 1;
  }

  // ((5 + length) / 6)^alpha, by which log probabilities are divided (Wu et al. 2016).
  penalty(length) {
    return ((5 + length) / 6) ** this.alpha;
  }

  score(logProb, length) {
    return (logProb - this.wordPenalty * length) / this.penalty(length);
  }

  // Returns whether the candidate of a rank is kept.
  isEligible(candidate, rank, finished) {
    return true;
  }

  // Returns whether a candidate competes for the result.
  isFinishing(candidate, length, limit) {
    return candidate.id === EOS;
  }

  // Returns whether the search is over, given the best unfinished and the finished hypotheses.
  isDone(length, limit, { logProb }, finished) {
    // A word penalty below 0 gives longer hypotheses a higher score.
    if (this.wordPenalty) return length >= limit || logProb === -Infinity;
    return length >= limit || this.isProven(length, limit, logProb, finished);
  }

  // Log probabilities never increase: this is an upper bound of all future scores.
  isProven(length, limit, logProb, finished) {
    return finished[0].score >= logProb / this.penalty(limit);
  }

  // Returns the logits of a step, which may force EOS at the limit.
  forceEnd(logits, length, limit) {
    return logits;
  }

  // Searches for the best translations that begin with the ids in `prefix`.
  // Returns {results, steps}: hypotheses {ids, logProb, score}, best first, and for each
  // step its candidates, the alive hypotheses and the finished hypotheses.
  search(decoder, encoderOutput, limit, prefix = []) {
    const { beamSize } = this;
    let state = decoder.start(encoderOutput);
    let alive = [{ ids: [], logProb: 0, score: 0 }];
    let finished = Array(beamSize).fill(NOTHING);
    const steps = [];
    for (let length = 1, isDone = false; !isDone; length++) {
      const lastIds = alive.map(({ ids }) => (ids.length ? ids[ids.length - 1] : PAD));
      const logits = this.forceEnd(decoder.step(lastIds, length - 1, state), length, limit);
      const prescribed = prefix[length - 1] ?? PAD;
      const isAllowed = (id) => (prescribed === PAD ? !this.never.includes(id) : id === prescribed);
      const candidates = bestCandidates(logits, alive, this.numCandidates, isAllowed).map((each, rank) => {
        const logProb = this.isEligible(each, rank, finished) ? each.logProb : -Infinity;
        return { ...each, logProb, ids: [...alive[each.parent].ids, each.id], score: this.score(logProb, length) };
      });
      const going = candidates.map((each) => (each.id === EOS ? -Infinity : each.logProb));
      const chosen = topK(going, beamSize).filter((at) => going[at] > -Infinity).map((at) => candidates[at]);
      const ended = candidates.filter((each) => this.isFinishing(each, length, limit));
      const rivals = [...finished, ...ended];
      finished = topK(rivals.map((each) => each.score), beamSize).map((at) => rivals[at]);
      isDone = this.isDone(length, limit, chosen[0] || NOTHING, finished);
      state = decoder.selectBeams(state, chosen.map((each) => each.parent));
      alive = chosen;
      const exists = (each) => each.logProb > -Infinity;
      steps.push({ candidates: candidates.filter(exists), alive, finished: finished.filter(exists) });
    }
    // Without finished hypotheses, the alive ones are the result.
    const results = finished[0].score > -Infinity ? finished : alive;
    return { results: results.filter((each) => each.logProb > -Infinity), steps };
  }
}

// Marian's search. Each finished hypothesis reduces the beam by one. A hypothesis that is
// cut at the limit counts as finished.
class MarianSearch extends T2TSearch {
  get numCandidates() {
    return this.beamSize;
  }

  penalty(length) {
    return length ** this.alpha;
  }

  // Keeps as many candidates as the beam has unfinished hypotheses.
  isEligible(candidate, rank, finished) {
    return rank < finished.filter((each) => each.score === -Infinity).length;
  }

  isFinishing(candidate, length, limit) {
    return candidate.id === EOS || length >= limit;
  }
}

// Transformers' search. Only the best `beam` candidates may finish. The search ends when a
// full beam of finished hypotheses is at least as good as the best unfinished one. At the
// limit EOS is forced, at no cost.
class TransformersSearch extends T2TSearch {
  penalty(length) {
    return length ** this.alpha;
  }

  isEligible(candidate, rank) {
    return candidate.id !== EOS || rank < this.beamSize;
  }

  // Compares the worst of a full beam with the best unfinished hypothesis.
  isProven(length, limit, logProb, finished) {
    return finished.at(-1).score >= logProb / this.penalty(length);
  }

  forceEnd(logits, length, limit) {
    return length < limit ? logits : onlyEos(logits);
  }
}

const SEARCHES = { t2t: T2TSearch, marian: MarianSearch, transformers: TransformersSearch };
