"use strict";
// The model's weights: float16 in the file, float32 in memory.

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

// Every float16 there is; a lookup is ten times as fast as arithmetic with its bits.
function float16Table() {
  const table = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    const size = exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
    table[bits] = bits & 0x8000 ? -size : size;
  }
  return table;
}

// `index`: [name, shape] of each variable, in the order of `bytes`, little-endian float16.
// Returns name -> {shape, data}; the names are those of the Python model's variables.
function readWeights(index, bytes) {
  const halves = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2);
  const table = float16Table();
  const weights = {};
  let at = 0;
  for (const [name, shape] of index) {
    const data = new Float32Array(shape.reduce((size, each) => size * each, 1));
    for (let n = 0; n < data.length; n++) data[n] = table[halves[at++]];
    weights[name] = { shape, data };
  }
  return weights;
}
