// The blocks of chapter 12 in the page, with the weights that data carries; it reads like attncourse.transformer.
const W = {};
const packed = atob(data.weights), bytes = new Uint8Array(packed.length / 3 * 4);
for (let i = 0; i < packed.length; i++) bytes[i + Math.floor(i / 3) + 1] = packed.charCodeAt(i); // the lowest byte is 0
const numbers = [...new Float32Array(bytes.buffer)];
let used = 0;
const take = count => numbers.slice(used, used += count);
for (const [name, rows, columns] of data.shapes) W[name] = columns ? Array.from({length: rows}, () => take(columns)) : take(rows);

const plus = (A, B) => A.map((row, i) => row.map((x, c) => x + B[i][c]));
/** As nn.Linear; a loop, because almost all time is spent here. */
const linear = (X, name) => {
  const weight = W[`${name}.weight`], bias = W[`${name}.bias`] ?? [];
  return X.map(x => weight.map((w, c) => {
    let sum = bias[c] ?? 0;
    for (let i = 0; i < w.length; i++) sum += w[i] * x[i];
    return sum;
  }));
};
const layerNorm = (X, name) => X.map(x => {
  const mean = x.reduce((a, b) => a + b) / x.length, centred = x.map(v => v - mean);
  const deviation = Math.sqrt(dot(centred, centred) / x.length + data.eps);
  return centred.map((v, c) => W[`${name}.gain`][c] * v / deviation + W[`${name}.bias`][c]);
});
/** A series whose terms have one sign: 2/√π · exp(−z²) · (z + 2z³/3 + 4z⁵/15 + …). */
const erf = z => {
  if (Math.abs(z) > 6) return Math.sign(z);
  let term = z, sum = z;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) sum += term *= 2 * z * z / (2 * n + 1);
  return 2 / Math.sqrt(Math.PI) * Math.exp(-z * z) * sum;
};
const gelu = x => x * (1 + erf(x / Math.SQRT2)) / 2;
/** A head that is off puts zeros in place of its output, before W_o; mask[i][j] is true where allowed. */
const multiHead = (X, name, on, mask) => {
  const [Q, K, V] = ["q", "k", "v"].map(view => linear(X, `${name}.W_${view}`)), wide = Q[0].length / on.length;
  const split = (view, h) => view.map(row => row.slice(h * wide, (h + 1) * wide));
  const found = on.map((_, h) => attention(split(Q, h), split(K, h), split(V, h), {mask}));
  const merged = X.map((_, i) => found.flatMap(({output}, h) => output[i].map(x => on[h] ? x : 0)));
  return {output: linear(merged, `${name}.W_o`), maps: found.map(({weights}) => weights)};
};
/** The stack of pre-norm blocks: what comes out, (n, d), and every head's map; on[layer][head]. */
const stack = (x, on, mask) => {
  const maps = on.map((states, layer) => {
    const block = `blocks.${layer}`, attended = multiHead(layerNorm(x, `${block}.norm_1`), `${block}.attention`, states, mask);
    x = plus(x, attended.output);
    const hidden = linear(layerNorm(x, `${block}.norm_2`), `${block}.feed_forward.W_1`).map(row => row.map(gelu));
    x = plus(x, linear(hidden, `${block}.feed_forward.W_2`));
    return attended.maps;
  });
  return {x, maps};
};
