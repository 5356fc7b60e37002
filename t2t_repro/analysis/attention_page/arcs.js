"use strict";
// Draws attention as lines between two lists of words; used by both pages.
//
// new WordArcs(places, content, changed)
//   places: {queries, keys, lines, status}: two <ul>, the <svg> between them and the text below.
//   content(): what is shown now, {queries, keys, headCount, heads, weight, verbs, where, byHead}:
//     the words of both sides, the number of heads, the shown heads, weight(head, query, key),
//     the verbs of a query and of a key ("attends to", "is attended to by"), the end of the status,
//     and whether heads keep their colours while no word is selected.
//   changed(): called after another word is selected; optional.
// Call makeWords() after the words change and draw() after the heads or the weights change.

const LEAST_LINE = 0.02; // Smaller weights are not drawn.
const LEAST_LINE_OF_ALL = 0.15; // The same while no word is selected.
const OTHER_SIDE = { queries: "keys", keys: "queries" };
const sameWord = (a, b) => a && b && a.side === b.side && a.index === b.index;

function headsInWords(heads, headCount) {
  if (!heads.length) return "no head";
  if (heads.length === headCount) return "mean of all heads";
  if (heads.length === 1) return `head ${heads[0] + 1}`;
  return `mean of heads ${heads.map((head) => head + 1).join(", ")}`;
}

class WordArcs {
  constructor({ queries, keys, lines, status }, content, changed = () => {}) {
    Object.assign(this, { lists: { queries, keys }, lines, status, content, changed });
    this.pinned = this.preview = null; // {side: "queries" or "keys", index}
    for (const side of Object.keys(this.lists)) this.listen(side);
    new ResizeObserver(() => this.drawLines()).observe(lines.parentElement);
  }

  selected() {
    return this.preview || this.pinned;
  }

  makeWords() {
    this.pinned = this.preview = null;
    for (const [side, list] of Object.entries(this.lists)) {
      list.replaceChildren(...this.content()[side].map((word, index) => element("li", { id: `${list.id}-${index}`, role: "option", tabIndex: index ? -1 : 0, title: word },
        element("span", { className: "name", dir: "auto" }, ...marked(word, (mark) => element("span", { className: "mark" }, mark))), element("span", { className: "percent" }))));
    }
  }

  mean(query, key) {
    const { heads, weight } = this.content();
    return heads.length ? heads.reduce((sum, head) => sum + weight(head, query, key), 0) / heads.length : 0;
  }

  share(side, chosen, index) {
    return side === "queries" ? this.mean(chosen, index) : this.mean(index, chosen);
  }

  listen(side) {
    const list = this.lists[side];
    const at = (event) => {
      const item = event.target.closest("li");
      return item && { side, index: [...list.children].indexOf(item) };
    };
    list.addEventListener("keydown", (event) => at(event) && this.onKey(event, at(event)));
    list.addEventListener("click", (event) => {
      const word = at(event);
      if (!word) return;
      if (sameWord(word, this.pinned)) this.select(null);
      else this.go(word);
    });
    list.addEventListener("focusin", (event) => {
      const word = at(event);
      // Handles focus by keyboard only; clicks have their own handler.
      if (word && !sameWord(word, this.pinned) && event.target.matches(":focus-visible")) this.go(word);
    });
    list.addEventListener("pointerover", (event) => {
      const word = at(event);
      if (event.pointerType !== "mouse" || !word || sameWord(word, this.selected())) return;
      this.preview = word;
      this.draw();
    });
    list.addEventListener("pointerleave", () => {
      if (!this.preview) return;
      this.preview = null;
      this.draw();
    });
  }

  select(word) {
    this.pinned = word;
    this.preview = null;
    this.draw();
    this.changed();
  }

  go({ side, index }) {
    for (const list of Object.values(this.lists)) for (const item of list.children) item.tabIndex = -1;
    const item = this.lists[side].children[index];
    item.tabIndex = 0;
    this.lists[OTHER_SIDE[side]].children[0].tabIndex = 0;
    this.pinned = { side, index };
    item.focus();
    this.select(this.pinned);
  }

  onKey(event, { side, index }) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const last = this.content()[side].length - 1;
    const across = { queries: "ArrowRight", keys: "ArrowLeft" }[side];
    const next = { ArrowDown: Math.min(index + 1, last), ArrowUp: Math.max(index - 1, 0), Home: 0, End: last, Enter: index, " ": index }[event.key];
    if (next !== undefined) this.go({ side, index: next });
    else if (event.key === across) this.go({ side: OTHER_SIDE[side], index: this.strongest(side, index) });
    else if (event.key === "Escape") this.select(null);
    else return;
    event.preventDefault();
  }

  strongest(side, index) {
    const partners = [...this.content()[OTHER_SIDE[side]].keys()];
    return partners.reduce((best, at) => (this.share(side, index, at) > this.share(side, index, best) ? at : best), 0);
  }

  // Returns [query, key, head or null for the mean, weight] of each line.
  pairsToDraw() {
    const { queries, keys, heads, weight, byHead } = this.content();
    const chosen = this.selected();
    const pairs = [];
    queries.forEach((_, query) => keys.forEach((__, key) => {
      if (chosen && { queries: query, keys: key }[chosen.side] !== chosen.index) return;
      if (!chosen && !byHead) pairs.push([query, key, null, this.mean(query, key)]);
      else for (const head of heads) pairs.push([query, key, head, weight(head, query, key)]);
    }));
    return pairs.filter(([, , , value]) => value >= (chosen ? LEAST_LINE : LEAST_LINE_OF_ALL));
  }

  draw() {
    this.drawLines();
    this.drawShares();
    this.drawStatus();
  }

  drawLines() {
    const { headCount } = this.content();
    const box = this.lines.getBoundingClientRect();
    const middle = (side, index) => {
      const item = this.lists[side].children[index].getBoundingClientRect();
      return item.top + item.height / 2 - box.top;
    };
    this.lines.replaceChildren(...this.pairsToDraw().map(([query, key, head, value]) => {
      const shift = head === null ? 0 : ((head + 0.5) / headCount - 0.5) * 10;
      const [from, to, x] = [middle("queries", query) + shift, middle("keys", key) + shift, box.width / 2];
      const path = svgElement("path", {
        d: `M2 ${from} C${x} ${from} ${x} ${to} ${box.width - 2} ${to}`,
        "stroke-opacity": value.toFixed(3),
        "stroke-width": (1 + 3 * value).toFixed(2),
        "data-weight": value.toFixed(5),
        "data-head": head === null ? "mean" : head,
        "data-pair": `${query}-${key}`,
      });
      path.style.stroke = head === null ? "var(--accent)" : headColour(head);
      return path;
    }));
  }

  drawShares() {
    const chosen = this.selected();
    for (const [side, list] of Object.entries(this.lists)) {
      [...list.children].forEach((item, index) => {
        const value = chosen && chosen.side === OTHER_SIDE[side] ? this.share(chosen.side, chosen.index, index) : null;
        item.classList.toggle("chosen", Boolean(sameWord(chosen, { side, index })));
        item.setAttribute("aria-selected", String(Boolean(sameWord(this.pinned, { side, index }))));
        item.style.setProperty("--share", value === null ? 0 : value.toFixed(3));
        item.querySelector(".percent").textContent = value !== null && value >= 0.005 ? percent(value) : "";
      });
    }
  }

  drawStatus() {
    const { heads, verbs, where } = this.content();
    const chosen = this.selected();
    if (!heads.length) this.status.textContent = `${where} Select a head to show its weights.`;
    else if (!chosen) this.status.textContent = `${where} Select a word to show its weights.`;
    else {
      const partners = this.content()[OTHER_SIDE[chosen.side]].map((name, index) => [this.share(chosen.side, chosen.index, index), name]);
      const top = partners.sort((a, b) => b[0] - a[0]).slice(0, 5).filter(([value]) => value >= 0.005);
      const told = top.map(([value, name]) => `${quoted(name)} ${percent(value)}`).join(", ");
      const verb = verbs[chosen.side === "queries" ? 0 : 1];
      this.status.textContent = `${quoted(this.content()[chosen.side][chosen.index])} ${verb} ${told || "no word in particular"}. ${where}`;
    }
  }
}
