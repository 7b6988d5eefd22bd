const {X, shift} = data;
/** The row of token i: scores, exponentials, weights, each vector times its weight, and their sum. */
root.compute = ({X, i, shift}) => {
  const scores = X.map(x => dot(x, X[i])), shares = softmax(scores), top = shift ? Math.max(...scores) : 0;
  const parts = X.map((x, j) => x.map(a => a * shares[j]));
  return {scores, raw: scores.map(s => Math.exp(s - top)), shares, parts, output: transposed(parts).map(column => column.reduce((a, b) => a + b))};
};
const rows = [...root.querySelectorAll(".am-stage tbody tr")].map(row => [...row.querySelectorAll("td")]);
const strongest = Math.max(...X.flat().map(Math.abs)) || 1;
const large = x => x < 100 ? shown(x) : x < 1e5 ? x.toFixed(0) : x.toExponential(1);
const show = i => {
  const {scores, raw, shares, parts, output} = root.now = root.compute({X, i, shift}), highest = Math.max(...scores.map(Math.abs)) || 1;
  rows.forEach(([score, power, share, ...cells], j) => {
    const last = j === X.length, numbers = last ? output : parts[j];
    power.textContent = large(last ? raw.reduce((a, b) => a + b) : raw[j]);
    cells.forEach((cell, a) => fill(cell, "value", numbers[a] / strongest, numbers[a]));
    if (last) return;
    fill(score, "key", scores[j] / highest, scores[j]);
    share.firstChild.textContent = shown(shares[j]);
    share.lastChild.style.opacity = shares[j];
  });
  const most = shares.indexOf(Math.max(...shares)), name = j => `“${data.tokens[j]}” (${j})`;
  tell(root, `${name(i)} listens most to ${most === i ? "itself" : name(most)}, with a weight of ${shown(shares[most])}. `
    + `The weights times the vectors add up to its output, ${output.map(x => shown(x)).join(", ")}.`);
};
pick(root, "token", show);
show(data.chosen);
