// A head in five stages. All matrices are recomputed at once when a number or the asker changes.
const {tokens, numbers} = data, stage = root.querySelector(".am-stage"), flow = stage.querySelector(".st-flow");
const say = root.querySelector(".am-say"), at = name => flow.querySelector(`[data-at="${name}"]`);
const sums = (a, b) => a.map((x, i) => `${short(x)}·${short(b[i])}`).join(" + ").replaceAll("+ −", "− ");
let now = structuredClone(numbers), asks = 0, lit = 0, wrong = "";

root.compute = ({X, W_q, W_k, W_v}) => {
  const Q = times(X, W_q), K = times(X, W_k), V = times(X, W_v);
  return {Q, K, V, ...attention(Q, K, V)};
};

/** What the lit stage does, with its numbers. */
const told = ({Q, K, V, scores, weights, output}) => {
  const x = now.X[asks], name = tokens[asks], a = weights[asks], s = scores[asks], d = Q[0].length;
  const view = (letter, W, result) => `${letter} = x W_${letter}: ${transposed(W).map((w, j) => `${sums(x, w)} = ${short(result[j])}`).join(" and ")}`;
  if (lit === 0) return [`“${name}” asks with q = ${tuple(Q[asks])}, gives most weight to “${tokens[a.indexOf(Math.max(...a))]}” (${shown(Math.max(...a))}) and receives u = ${tuple(output[asks])}.`];
  if (lit === 1) return [`“${name}” comes in as x, a row of X: ${tuple(x)}.`];
  if (lit === 2) return [`Three views of “${name}”:`, view("q", now.W_q, Q[asks]), view("k", now.W_k, K[asks]), view("v", now.W_v, V[asks])];
  if (lit === 3) return [`How well does each key fit the query of “${name}”?`, ...tokens.map((token, j) => `“${token}”: q · k = ${sums(Q[asks], K[j])} = ${short(dot(Q[asks], K[j]))}, and ÷ √${d} = ${short(s[j])}`)];
  if (lit === 5) return [`u = ${a.map((w, j) => `${shown(w)}·${tuple(V[j])}`).join(" + ")} = ${tuple(output[asks])}`];
  const top = Math.max(...s), less = top > 9 ? top : 0, e = s.map(t => Math.exp(t - less)), sum = e.reduce((p, q) => p + q, 0);
  return [`${less ? `${short(top)} is taken from every score, which changes no weight. ` : ""}Then ${s.map(t => `e^${short(t - less)}`).join(" + ")} = ${e.map(short).join(" + ")} = ${short(sum)}.`,
    ...tokens.map((token, j) => `“${token}”: ${short(e[j])} / ${short(sum)} = ${shown(a[j])}`)];
};

const show = () => {
  const {Q, K, V, scores, weights, output} = root.now = root.compute(now), put = (name, text) => { at(name).textContent = text; };
  for (const [name, matrix] of Object.entries({Q, K, V})) matrix.forEach((row, i) => row.forEach((x, j) => put(`${name}${i}${j}`, short(x))));
  put("q", tuple(Q[asks]));
  put("u", tuple(output[asks]));
  tokens.forEach((_, j) => {
    const w = weights[asks][j], cell = at(`w${j}`);
    put(`k${j}`, tuple(K[j]));
    put(`v${j}`, tuple(V[j]));
    put(`s${j}`, short(dot(Q[asks], K[j])));
    put(`c${j}`, short(scores[asks][j]));
    cell.firstChild.style.setProperty("--weight", w);
    cell.lastChild.textContent = shown(w);
    at(`f${j}`).style.strokeWidth = .5 + 6 * w;
  });
  flow.dataset.stage = lit;
  for (const part of flow.querySelectorAll("[data-lit]")) part.classList.toggle("st-lit", part.dataset.lit.includes(lit));
  for (const row of flow.querySelectorAll("[data-row]")) row.classList.toggle("st-asks", +row.dataset.row === asks);
  say.classList.toggle("am-wrong", wrong !== "");
  say.textContent = wrong || told(root.now).join("\n");
};

const cells = Object.entries(numbers).flatMap(([name, matrix]) => matrix.flatMap((row, i) => row.map((_, j) => {
  const who = name === "X" ? tokens[i] : `row ${i}`;
  const input = make("input", {type: "number", min: -9, max: 9, "aria-label": `${name}, ${who}, column ${j}`});
  const reset = () => { input.value = numbers[name][i][j]; input.ariaInvalid = "false"; };
  input.oninput = () => {
    const x = typed(input.value, -9, 9), bad = Number.isNaN(x);
    if (!bad) now[name][i][j] = x;
    input.ariaInvalid = String(bad);
    wrong = cells.some(([other]) => other.ariaInvalid === "true") ? `A marked cell holds no number from −9 to 9. The picture goes on with the last one that it held.` : "";
    show();
  };
  at(`${name}${i}${j}`).replaceChildren(input);
  reset();
  return [input, reset];
})));

pick(root, "asks", i => { asks = i; show(); });
const stages = pick(root, "stage", i => { lit = i; show(); }), part = partsOf(root);
part("next").onclick = () => stages[lit % 5 + 1].click();
part("page").onclick = () => {
  now = structuredClone(numbers);
  wrong = "";
  for (const [, reset] of cells) reset();
  show();
};
flow.before(say);
show();
