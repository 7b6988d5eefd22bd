// Painting a mask: mouse, finger or keyboard; what is hidden is shared out among the rest.
const {scores, values, tokens, presets} = data, part = partsOf(root), n = tokens.length, stage = root.querySelector(".am-stage");
const say = root.querySelector(".am-say"), table = stage.querySelector(".mp-grid");
const at = (kind, i, j) => stage.querySelector(`[data-at="${kind}${i}-${j}"]`);
let mask = presets[1][0], layers = 1, here = [0, 0], drag = null;

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
    receives.textContent = tuple(output[i]);
    [...known.children].forEach((chip, j) => { chip.className = reach[i][j] ? mask[i][j] ? "mp-direct" : "mp-through" : "mp-never"; });
    known.ariaLabel = list(tokens.filter((_, j) => reach[i][j])) || "nothing";
  }
  part("layers-now").textContent = layers;
  buttons.forEach((button, i) => button.ariaPressed = String(String(presets[i][0]) === String(mask)));
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

const buttons = pick(root, "preset", i => { mask = presets[i][0]; show(presets[i][1]); });
part("layers").oninput = event => {
  layers = +event.target.value;
  show(`Who can know whom ${layers > 1 ? `after ${layers} layers` : "directly"}: the filled and dashed words below.`);
};
stage.querySelector(".mp-pair").before(say);

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
