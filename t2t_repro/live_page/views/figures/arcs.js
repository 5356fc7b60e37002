"use strict";
// Attention as arcs between two columns of words: all heads in their colours, their mean, or one head.
//
// arcs(label, content) -> <figure>
//   content: look: a sentence that says what to look for; queries, keys: words; titles: their two
//     titles; heads: weights (heads, queries, keys); verbs: of a query and of a key, as
//     ["attends to", "is attended to by"]; where: for example "Encoder, layer 1";
//     shown: "each" (default), "mean" or the number of a head; choose(shown): called after a choice.

let drawnArcs = 0;

function arcs(label, { look = "", queries, keys, titles, heads, verbs, where, shown = "each", choose = () => {} }) {
  const id = `arcs-${++drawnArcs}`;
  const numbers = [...heads.keys()];
  let now = String(shown);
  const places = { status: element("p", { className: "status", role: "status" }), lines: svgElement("svg", { class: "lines", "aria-hidden": "true" }) };
  const column = (side, title) => {
    places[side] = element("ul", { id: `${id}-${side}`, role: "listbox", "aria-label": `${label}: ${title}` });
    return element("div", { className: "column" }, element("p", { className: "title" }, title), places[side]);
  };
  const columns = element("div", { className: "columns" }, column("queries", titles[0]), places.lines, column("keys", titles[1]));
  const drawn = new WordArcs(places, () => {
    const chosen = now === "each" || now === "mean" ? numbers : [Number(now)];
    // The shares of a selected word are those of the mean.
    const shownHeads = now === "each" && !drawn?.selected() ? "all heads" : headsInWords(chosen, heads.length);
    return { queries, keys, headCount: heads.length, heads: chosen, weight: (head, query, key) => heads[head][query][key], verbs, where: `${where}, ${shownHeads}.`, byHead: now !== "mean" };
  });
  const options = [["each", "all heads"], ["mean", "their mean"], ...numbers.map((head) => [String(head), `head ${head + 1}`, headColour(head)])];
  const fieldset = element("fieldset", { className: "arc-heads" }, element("legend", {}, "Show"));
  for (const [value, text, colour] of options) {
    const input = element("input", { type: "radio", name: `${id}-heads`, value, checked: value === now });
    const choice = element("label", { className: colour ? "choice head" : "choice" }, input, element("span", {}, text));
    if (colour) choice.style.setProperty("--colour", colour);
    input.addEventListener("change", () => {
      now = value;
      drawn.draw();
      choose(value);
    });
    fieldset.append(choice);
  }
  drawn.makeWords();
  drawn.draw(); // The lines are drawn again when the figure gets its size.
  return framed(label, look, fieldset, columns, places.status);
}
