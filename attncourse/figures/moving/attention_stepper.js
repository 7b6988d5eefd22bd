// A head in five stages. All matrices are recomputed at once when a number or the asker changes.
const {tokens, numbers} = data, now = structuredClone(numbers), part = partsOf(root);
const flow = root.querySelector(".st-flow"), say = root.querySelector(".am-say"), at = name => flow.querySelector(`[data-at="${name}"]`);
const sums = (a, b) => a.map((x, i) => `${short(x)}·${short(b[i])}`).join(" + ").replaceAll("+ −", "− ");
let asks = 0, lit = 1, wrong = false, asked = null;

root.compute = ({X, W_q, W_k, W_v}) => {
  const Q = times(X, W_q), K = times(X, W_k), V = times(X, W_v);
  return {Q, K, V, ...attention(Q, K, V)};
};

/** What the lit stage does, with its numbers. */
const told = ({Q, K, V, scores, weights, output}) => {
  const x = now.X[asks], name = `“${tokens[asks]}”`, q = Q[asks], a = weights[asks], s = scores[asks], most = Math.max(...a), top = Math.max(...s);
  const each = tell => tokens.map((token, j) => `“${token}”: ${tell(j)}`), less = top > 9 ? top : 0, e = s.map(t => Math.exp(t - less)), sum = short(e.reduce((p, r) => p + r, 0));
  const view = (v, W, result) => `${v} = x W_${v}: ${transposed(W).map((w, j) => `${sums(x, w)} = ${short(result[asks][j])}`).join(" and ")}`;
  return [
    () => [`${name} asks with q = ${tuple(q)}, gives most weight to “${tokens[a.indexOf(most)]}” (${shown(most)}) and receives u = ${tuple(output[asks])}.`],
    () => [`${name} comes in as x, a row of X: ${tuple(x)}.`],
    () => [`Three views of ${name}:`, view("q", now.W_q, Q), view("k", now.W_k, K), view("v", now.W_v, V)],
    () => [`How well does each key fit the query of ${name}?`, ...each(j => `q · k = ${sums(q, K[j])} = ${short(dot(q, K[j]))}, and ÷ √${q.length} = ${short(s[j])}`)],
    () => [`${less ? `${short(top)} is taken from every score, which changes no weight. ` : ""}${s.map(t => `e^${short(t - less)}`).join(" + ")} = ${e.map(short).join(" + ")} = ${sum}`, ...each(j => `${short(e[j])} / ${sum} = ${shown(a[j])}`)],
    () => [`u = ${a.map((w, j) => `${shown(w)}·${tuple(V[j])}`).join(" + ")} = ${tuple(output[asks])}`],
  ][lit]().join("\n");
};

const show = () => {
  const {Q, K, V, scores, weights, output} = root.now = root.compute(now), put = (name, text) => { at(name).textContent = text; };
  for (const [name, matrix] of Object.entries({Q, K, V})) matrix.forEach((row, i) => row.forEach((x, j) => put(name + i + j, short(x))));
  put("q", tuple(Q[asks]));
  put("u", tuple(output[asks]));
  weights[asks].forEach((w, j) => {
    const column = {k: tuple(K[j]), v: tuple(V[j]), s: short(dot(Q[asks], K[j])), c: short(scores[asks][j])};
    for (const letter in column) put(letter + j, column[letter]);
    at(`w${j}`).firstChild.style.setProperty("--weight", w);
    at(`w${j}`).lastChild.textContent = shown(w);
    at(`f${j}`).style.strokeWidth = .5 + 6 * w;
  });
  flow.dataset.stage = lit;
  for (const node of flow.querySelectorAll("[data-lit]")) {
    node.classList.toggle("st-lit", node.dataset.lit.includes(lit));
    node.classList.toggle("st-later", lit && node.dataset.lit.split(" ")[0] > lit);
  }
  for (const row of flow.querySelectorAll("[data-row]")) row.classList.toggle("st-asks", +row.dataset.row === asks);
  explain();
  say.classList.toggle("am-wrong", wrong);
  say.textContent = wrong ? "A marked cell holds no number from −9 to 9. The picture goes on with the last one that it held." : told(root.now);
};

/** The score of the key that was pressed, product by product. */
const explain = () => {
  part("why").hidden = asked === null;
  tokens.forEach((_, j) => { at(`s${j}`).ariaPressed = String(j === asked); });
  if (asked === null) return;
  const {Q, K} = root.now, d = Q[0].length;
  root.why = scoreSum(part("why"), {query: Q[asks], keys: K, names: tokens, chosen: asked, by: 1 / Math.sqrt(d), divided: `divided by √${d}`});
  part("why").prepend(make("p", {}, `Why does “${tokens[asks]}” give “${tokens[asked]}” this score?`));
};
for (const j of tokens.keys()) {
  const open = () => { asked = j === asked ? null : j; show(); if (asked !== null) part("why").scrollIntoView({block: "nearest"}); }, score = at(`s${j}`);
  score.replaceWith(make("button", {type: "button", className: score.className, title: "Why this score?", "data-at": `s${j}`, "data-part": `why-${j}`, "aria-pressed": false}));
  for (const letter of "scw") { at(letter + j).onclick = open; at(letter + j).classList.add("st-press"); }
}
const cells = Object.entries(now).flatMap(([name, matrix]) => matrix.flatMap((row, i) => row.map((x, j) => {
  const input = make("input", {type: "number", min: -9, max: 9, defaultValue: x, oninput: () => read(), "aria-label": `${name}, ${name === "X" ? tokens[i] : `row ${i}`}, column ${j}`});
  at(name + i + j).replaceChildren(input);
  return {input, row, j};
})));
const read = () => {
  wrong = false;
  for (const {input, row, j} of cells) {
    const x = typed(input.value, -9, 9), bad = Number.isNaN(x);
    input.ariaInvalid = bad;
    if (bad) wrong = true;
    else row[j] = x;
  }
  show();
};
pick(root, "asks", i => { asks = i; show(); });
/** All numbers as text, which an address keeps, and back; false where a cell would hold none. */
root.state = () => cells.map(({input}) => input.value).join(",");
root.restore = text => {
  const all = text.split(",");
  if (all.length !== cells.length || all.some(one => Number.isNaN(typed(one, -9, 9)))) return false;
  cells.forEach(({input}, i) => { input.value = all[i]; });
  read();
  return true;
};
const stages = pick(root, "stage", i => { lit = i; show(); });
part("next").onclick = () => stages[lit % 5 + 1].click();
part("page").onclick = () => {
  for (const {input} of cells) input.value = input.defaultValue;
  read();
};
flow.before(say);
show();
