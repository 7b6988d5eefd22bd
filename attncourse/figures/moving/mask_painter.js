// Painting a mask: mouse, finger or keyboard; what is hidden is shared out among the rest.
const {scores, values, tokens} = data, n = tokens.length, stage = root.querySelector(".am-stage");
const say = root.querySelector(".am-say"), table = stage.querySelector(".mp-grid");
const at = (kind, i, j) => stage.querySelector(`[data-at="${kind}${i}-${j}"]`);
const all = test => tokens.map((_, i) => tokens.map((_, j) => test(i, j)));
const half = Math.ceil(n / 2), real = n - Math.ceil(n / 3);
const PRESETS = {
  All: [() => true, "Every token sees every token."],
  Causal: [(i, j) => j <= i, "Causal: each token sees itself and those before it."],
  Padding: [(i, j) => j < real, `Padding: the last ${n - real} tokens are filling, and nobody sees them.`],
  "Window of 3": [(i, j) => Math.abs(i - j) < 2, "Window: each token sees itself and its two neighbours."],
  Blocks: [(i, j) => Math.floor(i / half) === Math.floor(j / half), `Blocks of ${half}: each token sees its own block, however many layers there are.`],
  None: [() => false, "Nothing may be seen. Paint what may."],
};
let mask = all(PRESETS.Causal[0]), layers = 1, here = [0, 0], drag = null;

root.compute = ({scores, values, mask, layers = 1}) => {
  const weights = scores.map((row, i) => softmax(row, mask[i]));
  let reach = mask;
  for (let k = 1; k < layers; k++) reach = mask.map(row => tokens.map((_, j) => row.some((seen, l) => seen && reach[l]?.[j])));
  return {weights, output: times(weights, values), reach, lonely: mask.flatMap((row, i) => row.includes(true) ? [] : [i])};
};

const list = names => names.length < 2 ? names.join("") : names.slice(0, -1).join(", ") + " and " + names.at(-1);
const show = (first = "") => {
  const {weights, output, reach, lonely} = root.now = root.compute({scores, values, mask, layers});
  root.now.mask = mask;
  mask.forEach((row, i) => row.forEach((seen, j) => {
    const score = at("s", i, j), weight = at("w", i, j), w = weights[i][j];
    for (const cell of [score, weight]) cell.classList.toggle("mp-masked", !seen);
    score.ariaSelected = String(seen);
    score.ariaLabel = `${tokens[i]} asks ${tokens[j]}: score ${shown(scores[i][j], 1)}, ${seen ? "allowed" : "masked"}`;
    score.tabIndex = i === here[0] && j === here[1] ? 0 : -1;
    weight.firstChild.style.setProperty("--weight", w);
    weight.lastChild.textContent = shown(w);
  }));
  for (const row of stage.querySelectorAll("[data-row]")) {
    const i = +row.dataset.row, [, receives, known] = row.children;
    receives.textContent = `(${output[i].map(x => String(+x.toFixed(2)).replace("-", "−")).join(", ")})`;
    [...known.children].forEach((chip, j) => { chip.className = reach[i][j] ? mask[i][j] ? "mp-direct" : "mp-through" : "mp-never"; });
    known.ariaLabel = list(tokens.filter((_, j) => reach[i][j])) || "nothing";
  }
  count.textContent = layers === 1 ? "after 1 layer" : `after ${layers} layers`;
  for (const [name, button] of buttons) button.ariaPressed = String(String(all(PRESETS[name][0])) === String(mask));
  const none = lonely.length ? `${list(lonely.map(i => `“${tokens[i]}”`))} ${lonely.length > 1 ? "have" : "has"} no key left: all weights are 0, and what is received is 0.` : "";
  say.textContent = `${first} ${none}`.trim();
};
const told = i => {
  const {weights} = root.compute({scores, values, mask}), seen = tokens.flatMap((token, j) => mask[i][j] ? [`“${token}” ${shown(weights[i][j])}`] : []);
  return seen.length ? `“${tokens[i]}” listens to ${list(seen)}.` : "";
};
const paint = (cell, seen) => {
  const [i, j] = here = place(cell);
  mask = mask.map((row, y) => row.map((old, x) => y === i && x === j ? seen : old));
  show(told(i));
};
const place = cell => cell.dataset.at.slice(1).split("-").map(Number);
const allowed = cell => mask[place(cell)[0]][place(cell)[1]];

const buttons = Object.entries(PRESETS).map(([name, [test, words]]) => [name, make("button", {type: "button", onclick: () => { mask = all(test); show(words); }}, name)]);
const count = make("span"), slider = make("input", {type: "range", min: 1, max: n, value: 1, ariaLabel: "Layers"});
slider.oninput = () => { layers = +slider.value; show(`Who can know whom ${layers > 1 ? `after ${layers} layers` : "directly"}: the filled and dashed words below.`); };
stage.prepend(make("div", {className: "am-row", role: "group", "aria-label": "Masks"}, ...buttons.map(([, button]) => button)), say);
stage.querySelector(".mp-known").before(make("label", {className: "am-row"}, "What each token can know", slider, count));

table.setAttribute("role", "grid");
table.ariaMultiSelectable = "true";
table.onpointerdown = event => {
  const cell = event.target.closest("td[data-at]");
  drag = cell && event.button === 0 ? {cell, to: !allowed(cell), moved: false} : null;
  if (event.target.hasPointerCapture?.(event.pointerId)) event.target.releasePointerCapture(event.pointerId);
};
table.onpointermove = event => {
  if (!drag || !event.buttons) return;
  const cell = document.elementFromPoint(event.clientX, event.clientY)?.closest("td[data-at]");
  if (!cell || !table.contains(cell) || cell === drag.cell && !drag.moved) return;
  if (!drag.moved) paint(drag.cell, drag.to);
  drag.moved = true;
  paint(cell, drag.to);
};
table.onpointercancel = () => { drag = null; };
table.onclick = event => {
  const cell = event.target.closest("td[data-at]");
  if (cell && !drag?.moved) paint(cell, !allowed(cell));
  drag = null;
};
table.onkeydown = event => {
  const [i, j] = here, to = {ArrowUp: [i - 1, j], ArrowDown: [i + 1, j], ArrowLeft: [i, j - 1], ArrowRight: [i, j + 1], Home: [i, 0], End: [i, n - 1]}[event.key];
  if (event.key === " " || event.key === "Enter") paint(at("s", i, j), !mask[i][j]);
  else if (!to) return;
  event.preventDefault();
  if (!to) return;
  here = to.map(x => Math.max(0, Math.min(n - 1, x)));
  at("s", i, j).tabIndex = -1;
  const next = at("s", ...here);
  next.tabIndex = 0;
  next.focus();
};
show("Click a cell or drag over several; or go there with the arrow keys and press space.");
