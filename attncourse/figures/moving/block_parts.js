const part = partsOf(root), {x, layers} = data, names = ["residual", "norm", "feed-forward"];
/** The error function by a series of positive terms, exact to rounding. */
const erf = z => {
  if (Math.abs(z) > 6) return Math.sign(z);
  let term = z, sum = z;
  for (let n = 1; n < 150; n++) sum += term *= 2 * z * z / (2 * n + 1);
  return 2 / Math.sqrt(Math.PI) * Math.exp(-z * z) * sum;
};
const mean = row => row.reduce((a, b) => a + b, 0) / row.length;
const normed = row => {
  const middle = mean(row), rest = row.map(v => v - middle), size = Math.sqrt(dot(rest, rest) / row.length + 1e-5);
  return rest.map(v => v / size);
};
const length = X => Math.hypot(...X.flat());
/** The tokens before the first block and after each, and how far apart they are. */
root.compute = ({x, layers, residual, norm, feed}) => {
  const add = (X, branch) => {
    const Y = branch(norm ? X.map(normed) : X);
    return residual ? X.map((row, i) => row.map((v, a) => v + Y[i][a])) : Y;
  };
  const rows = [x];
  for (const {W_q, W_k, W_v, W_o, W_1, W_2} of layers) {
    let X = add(rows.at(-1), X => times(attention(times(X, W_q), times(X, W_k), times(X, W_v)).output, W_o));
    if (feed) X = add(X, X => times(times(X, W_1).map(row => row.map(v => v * (1 + erf(v / Math.SQRT2)) / 2)), W_2));
    rows.push(X);
  }
  const apart = rows.map(X => {
    const middle = transposed(X).map(mean);
    return length(X.map(row => row.map((v, a) => v - middle[a]))) / (length(X) || 1);
  });
  return {rows, apart};
};
const on = [false, false, false];
let depth = data.depth;
const show = () => {
  const [residual, norm, feed] = on, now = root.now = root.compute({x, layers, residual, norm, feed}), X = now.rows[depth];
  const most = Math.max(...X.flat().map(Math.abs)) || 1;
  part("rows").querySelectorAll("tr").forEach((line, i) =>
    line.querySelectorAll("td").forEach((cell, a) => fill(cell, "value", X[i][a] / most, X[i][a], 3)));
  part("apart").querySelectorAll("td").forEach((cell, i) => {
    cell.textContent = shown(100 * now.apart[i], 0);
    cell.classList.toggle("am-chosen", i === depth);
  });
  part("bars").querySelectorAll("i").forEach((bar, i) => { bar.style.height = `${100 * now.apart[i]}%`; });
  names.forEach((name, i) => part(`part-${name}`).ariaPressed = String(on[i]));
  part("depth-now").textContent = depth;
  const there = names.filter((_, i) => on[i]);
  tell(root, `${there.length ? `Attention with ${there.join(", ")}.` : "Attention alone."} After ${depth} blocks the tokens are apart by `
    + `${shown(100 * now.apart[depth], 1)} % of their size.`);
};
names.forEach((name, i) => part(`part-${name}`).onclick = () => { on[i] = !on[i]; show(); });
/** The depth is where the bars are held. */
dragged(part("bars"), event => {
  const cells = [...part("bars").querySelectorAll("td:has(i)")], at = cells.findIndex(cell => event.clientX < cell.getBoundingClientRect().right);
  part("depth").value = depth = at < 0 ? cells.length - 1 : at;
  show();
});
part("depth").oninput = event => { depth = +event.target.value; show(); };
show();
