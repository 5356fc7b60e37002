"use strict";
// The model's weights: 24 or 32 bits per value in the file, float32 in memory.

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

// `index` lists [name, shape] of each variable in the order of `bytes`, which contain the
// upper three bytes of each float32 in little-endian order, or all four.
// Returns name -> {shape, data} with the variable names of the Python model.
function readWeights(index, bytes) {
  const sizes = index.map(([, shape]) => shape.reduce((size, each) => size * each, 1));
  const isExact = bytes.length === 4 * sizes.reduce((sum, size) => sum + size, 0);
  const weights = {};
  let at = 0;
  index.forEach(([name, shape], n) => {
    const bits = new Uint32Array(sizes[n]);
    for (let k = 0; k < bits.length; k++) {
      const lowest = isExact ? bytes[at++] : 0;
      bits[k] = lowest | (bytes[at++] << 8) | (bytes[at++] << 16) | (bytes[at++] << 24);
    }
    weights[name] = { shape, data: new Float32Array(bits.buffer) };
  });
  return weights;
}
