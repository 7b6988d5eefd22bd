// Painting a mask: mouse, finger or keyboard; what is hidden is shared out among the rest.
const {scores, values, tokens, presets} = data, part = partsOf(root), n = tokens.length, stage = root.querySelector(".am-stage");
const say = root.querySelector(".am-say"), table = stage.querySelector(".mp-grid"), at = (kind, i, j) => stage.querySelector(`[data-at="${kind}${i}-${j}"]`);
const list = names => names.slice(0, -1).join(", ") + (names.length > 1 ? " and " : "") + (names.at(-1) ?? "");
const painted = data.brief ? "w" : "s"; // the grid that is painted on
let mask = presets[data.first][0], here = [0, 0], drag = null;

root.compute = ({scores, values, mask, layers = 1}) => {
  const weights = scores.map((row, i) => softmax(row, mask[i]));
  let reach = mask;
  for (let k = 1; k < layers; k++) reach = mask.map(row => row.map((_, j) => row.some((seen, l) => seen && reach[l][j])));
  return {mask, weights, output: times(weights, values), reach, lonely: mask.flatMap((row, i) => row.includes(true) ? [] : [i])};
};

const show = told => {
  const layers = +(part("layers")?.value ?? 1), {weights, output, reach, lonely} = root.now = root.compute({scores, values, mask, layers});
  weights.forEach((row, i) => row.forEach((w, j) => {
    const cell = at(painted, i, j), weight = at("w", i, j), seen = mask[i][j];
    for (const one of [cell, weight]) one.classList.toggle("mp-masked", !seen);
    cell.ariaSelected = seen;
    const number = data.brief ? `weight ${shown(w)}` : `score ${shown(scores[i][j], 1)}`;
    cell.ariaLabel = `${tokens[i]} asks ${tokens[j]}: ${number}, ${seen ? "allowed" : "masked"}`;
    cell.tabIndex = i === here[0] && j === here[1] ? 0 : -1;
    weight.firstChild.style.setProperty("--weight", w);
    weight.lastChild.textContent = shown(w);
  }));
  stage.querySelectorAll("[data-row]").forEach((row, i) => {
    const [, receives, known] = row.children;
    receives.textContent = tuple(output[i]);
    [...known.children].forEach((chip, j) => { chip.className = reach[i][j] ? mask[i][j] ? "mp-direct" : "mp-through" : "mp-never"; });
    known.ariaLabel = list(tokens.filter((_, j) => reach[i][j])) || "nothing";
  });
  if (part("layers")) part("layers-now").textContent = layers;
  buttons.forEach((button, i) => button.ariaPressed = `${presets[i][0]}` === `${mask}`);
  const none = list(lonely.map(i => `“${tokens[i]}”`)), first = told(weights);
  say.textContent = first + (none && ` ${none} ${lonely.length > 1 ? "have" : "has"} no key left: all weights are 0, and what is received is 0.`);
};
const under = event => event.target.closest("td[data-at]")?.dataset.at.slice(1).split("-").map(Number), seen = ([i, j]) => mask[i][j];
const paint = (to, allowed) => {
  const [i, j] = here = to;
  mask = structuredClone(mask);
  mask[i][j] = allowed;
  show(weights => mask[i].includes(true) ? `“${tokens[i]}” listens to ${list(tokens.map((token, l) => `“${token}” ${shown(weights[i][l])}`).filter((_, l) => mask[i][l]))}.` : "");
};

/** The mask as text, which an address keeps, and back; false where it is none of this size. */
root.state = () => mask.map(row => row.map(Number).join("")).join(".");
root.restore = text => {
  const rows = text.split(".");
  if (rows.length !== n || rows.some(row => row.length !== n || /[^01]/.test(row))) return false;
  mask = rows.map(row => [...row].map(sign => sign === "1"));
  show(() => "The mask is painted.");
  return true;
};
const buttons = pick(root, "preset", i => { mask = presets[i][0]; show(() => presets[i][1]); });
if (part("layers")) part("layers").oninput = () => show(() => "Who can know whom: the filled and dashed words below.");
stage.querySelector(".mp-pair")[data.brief ? "after" : "before"](say); // what is painted on stays in its place
table.setAttribute("role", "grid");
table.ariaMultiSelectable = true;
table.onpointerdown = event => {
  const from = under(event);
  drag = from && event.button === 0 ? {from, to: !seen(from)} : null;
  event.target.releasePointerCapture(event.pointerId);
};
table.onpointermove = event => {
  const to = drag && event.buttons && under(event);
  if (!to || !drag.moved && `${to}` === `${drag.from}`) return;
  if (!drag.moved) paint(drag.from, drag.to);
  drag.moved = true;
  paint(to, drag.to);
};
table.onclick = event => {
  const to = under(event);
  if (to && !drag?.moved) paint(to, !seen(to));
  drag = null;
};
table.onkeydown = event => {
  const move = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -n], End: [0, n], " ": [], Enter: []}[event.key];
  if (!move) return;
  event.preventDefault();
  if (!move.length) return paint(here, !seen(here));
  at(painted, ...here).tabIndex = -1;
  here = here.map((x, axis) => Math.max(0, Math.min(n - 1, x + move[axis])));
  const next = at(painted, ...here);
  next.tabIndex = 0;
  next.focus();
};
show(() => data.brief ? presets[data.first][1] + " Click a cell, or drag over several."
  : "Click a cell or drag over several; or go there with the arrow keys and press space.");
