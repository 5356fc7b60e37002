"use strict";
// Arithmetic with rows. A sentence (length, channels) is an array with one Float32Array
// per position. Sums are accumulated in float64.

const makeRows = (count, channels) => Array.from({ length: count }, () => new Float32Array(channels));

// Computes two rows of the result and four of its columns at a time, so that the sums stay in
// registers. Weight (channel, unit) is at channel * channelStep + unit * unitStep in `weights`.
function multiply(x, weights, channels, channelStep, units, unitStep, bias) {
  const y = x.map(() => new Float32Array(units));
  const [two, three] = [2 * unitStep, 3 * unitStep];
  for (let n = 0; n < x.length; n += 2) {
    // The last row of an odd number is computed twice, and so are the last columns.
    const [row, next, to, toNext] = [x[n], x[n + 1] || x[n], y[n], y[n + 1] || y[n]];
    for (let start = 0; start < units; start += 4) {
      const unit = Math.max(0, Math.min(start, units - 4));
      let a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
      for (let channel = 0, at = unit * unitStep; channel < channels; channel++, at += channelStep) {
        const value = row[channel], below = next[channel];
        const p = weights[at], q = weights[at + unitStep], r = weights[at + two], s = weights[at + three];
        a += value * p; b += value * q; c += value * r; d += value * s;
        e += below * p; f += below * q; g += below * r; h += below * s;
      }
      if (bias) {
        const [p, q, r, s] = bias.data.subarray(unit, unit + 4);
        a += p; b += q; c += r; d += s;
        e += p; f += q; g += r; h += s;
      }
      [to[unit], to[unit + 1], to[unit + 2], to[unit + 3]] = [a, b, c, d];
      [toNext[unit], toNext[unit + 1], toNext[unit + 2], toNext[unit + 3]] = [e, f, g, h];
    }
  }
  return y;
}

// Computes x W + b: (length, channels) -> (length, units).
function product(x, kernel, bias = null) {
  const [channels, units] = kernel.shape;
  return multiply(x, kernel.data, channels, units, units, 1, bias);
}

// Computes the logits x E^T + b (section 3.4).
function productWithTable(x, table, bias = null) {
  const [rows, channels] = table.shape;
  return multiply(x, table.data, channels, 1, rows, channels, bias);
}

function dot(a, aStart, b, bStart, size) {
  let sum = 0;
  for (let n = 0; n < size; n++) sum += a[aStart + n] * b[bStart + n];
  return sum;
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
