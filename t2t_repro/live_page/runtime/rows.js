"use strict";
// Arithmetic with rows. A sentence (length, channels) is an array with one Float32Array
// per position. Sums are accumulated in float64.

const makeRows = (count, channels) => Array.from({ length: count }, () => new Float32Array(channels));

// Computes x W + b: (length, channels) -> (length, units).
function product(x, kernel, bias = null) {
  const [channels, units] = kernel.shape;
  const weights = kernel.data;
  const sums = new Float64Array(units);
  return x.map((row) => {
    if (bias) sums.set(bias.data);
    else sums.fill(0);
    let channel = 0;
    // Processes four rows of W at once to read and write each sum only once for them.
    for (; channel + 3 < channels; channel += 4) {
      const a = row[channel], b = row[channel + 1], c = row[channel + 2], d = row[channel + 3];
      let p = channel * units, q = p + units, r = q + units, s = r + units;
      for (let unit = 0; unit < units; unit++) {
        sums[unit] += a * weights[p++] + b * weights[q++] + c * weights[r++] + d * weights[s++];
      }
    }
    for (; channel < channels; channel++) {
      let p = channel * units;
      for (let unit = 0; unit < units; unit++) sums[unit] += row[channel] * weights[p++];
    }
    return Float32Array.from(sums);
  });
}

function dot(a, aStart, b, bStart, size) {
  let sum = 0;
  for (let n = 0; n < size; n++) sum += a[aStart + n] * b[bStart + n];
  return sum;
}

// Computes the logits x E^T + b (section 3.4).
function productWithTable(x, table, bias = null) {
  const [rows, channels] = table.shape;
  return x.map((row) => Float32Array.from({ length: rows }, (_, n) => dot(row, 0, table.data, n * channels, channels) + (bias ? bias.data[n] : 0)));
}

const addRows = (x, y) => x.map((row, at) => row.map((value, channel) => value + y[at][channel]));

// Returns the logarithm of the sum of exponentials without overflow.
function logSumExp(values) {
  let largest = -Infinity;
  for (const value of values) if (value > largest) largest = value;
  let sum = 0;
  for (const value of values) sum += Math.exp(value - largest);
  return largest + Math.log(sum);
}

function softmax(values) {
  const normaliser = logSumExp(values);
  return values.map((value) => Math.exp(value - normaliser));
}
