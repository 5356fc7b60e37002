// Draws a small weight matrix for each head of the layer.

const overview = document.getElementById("overview");

function makeOverview() {
  const items = [...Array(shown().headCount).keys()].map((head) => {
    const button = element("button", { type: "button", id: `head-${head}` }, element("canvas", { role: "presentation" }), element("span", {}, `Head ${head + 1}`), element("small", {}));
    button.style.setProperty("--colour", headColour(head));
    button.addEventListener("click", () => {
      const alone = state.heads.size === 1 && state.heads.has(head);
      chooseHeads(alone ? [...Array(shown().headCount).keys()] : [head]);
    });
    return element("li", {}, button);
  });
  overview.replaceChildren(...items);
}

function drawHead(button, head) {
  const { queries, keys } = shown();
  const canvas = button.querySelector("canvas");
  canvas.width = keys.length;
  canvas.height = queries.length;
  const rgb = getComputedStyle(document.documentElement).getPropertyValue("--accent-rgb").split(",").map(Number);
  const context = canvas.getContext("2d");
  const image = context.createImageData(keys.length, queries.length);
  let sharpness = 0;
  for (let query = 0; query < queries.length; query++) {
    let largest = 0;
    for (let key = 0; key < keys.length; key++) {
      const value = weight(head, query, key);
      largest = Math.max(largest, value);
      image.data.set([...rgb, Math.round(255 * value)], 4 * (query * keys.length + key));
    }
    sharpness += largest / queries.length;
  }
  context.putImageData(image, 0, 0);
  button.querySelector("small").textContent = `mean of largest weights: ${percent(sharpness)}`;
  button.setAttribute("aria-pressed", String(state.heads.size === 1 && state.heads.has(head)));
}

function drawOverview() {
  [...overview.querySelectorAll("button")].forEach(drawHead);
}

function drawAll() {
  drawWords();
  drawOverview();
}
