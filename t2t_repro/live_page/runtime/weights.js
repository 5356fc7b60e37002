"use strict";
// The model's weights: 24 bits per value in the file, float32 in memory.

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

// `index` lists [name, shape] of each variable in the order of `bytes`, which contain the
// upper three bytes of each float32 in little-endian order.
// Returns name -> {shape, data} with the variable names of the Python model.
function readWeights(index, bytes) {
  const weights = {};
  let at = 0;
  for (const [name, shape] of index) {
    const bits = new Uint32Array(shape.reduce((size, each) => size * each, 1));
    for (let n = 0; n < bits.length; n++, at += 3) {
      bits[n] = (bytes[at] << 8) | (bytes[at + 1] << 16) | (bytes[at + 2] << 24);
    }
    weights[name] = { shape, data: new Float32Array(bits.buffer) };
  }
  return weights;
}
