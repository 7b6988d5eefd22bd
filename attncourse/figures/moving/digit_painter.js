// A vision transformer that reads what is painted; the blocks are those of transformer.js.
const part = partsOf(root), stage = root.querySelector(".am-stage"), {side, patch, heads, presets} = data, across = side / patch;
const cells = [...stage.querySelectorAll(".dp-paint td")], tiles = [...stage.querySelectorAll(".dp-tile")], lines = [...stage.querySelectorAll(".dp-bars tr")];
const table = part("paint");

/** From ink, a number from 0 to 16 for each pixel, to logits, probabilities, all maps, and the class token's shares. */
root.compute = ({ink}) => {
  const patches = Array.from({length: across ** 2}, (_, n) => Array.from({length: patch ** 2}, (_, i) =>
    (ink[(Math.floor(n / across) * patch + Math.floor(i / patch)) * side + n % across * patch + i % patch] - data.shift) / data.scale));
  const {x, maps} = stack(plus([W.class_token, ...linear(patches, "project")], W.positions), heads.map(h => Array(h).fill(true)));
  const [logits] = linear(layerNorm(x.slice(0, 1), "norm"), "out"), last = maps.at(-1);
  const row = patches.map((_, j) => last.reduce((sum, A) => sum + A[0][j + 1], 0)), whole = row.reduce((a, b) => a + b);
  return {logits, chances: softmax(logits), maps, looks: row.map(w => w / whole)};
};

/** Each pixel is 4 × 4 dots, as in the scans that the digits were made from: its ink is how many of them are black. */
let dots, begun = data.chosen, here = 0, last = null, rubbing = false;
const wide = 4 * side, dotsOf = cell => Array.from({length: 16}, (_, k) => (Math.floor(cell / side) * 4 + (k >> 2)) * wide + cell % side * 4 + k % 4);
const inkOf = () => cells.map((_, cell) => dotsOf(cell).reduce((sum, at) => sum + dots[at], 0));
const lay = (cell, ink) => dotsOf(cell).forEach((at, k) => { dots[at] = +(k < ink); });
const show = () => {
  // No image of the training was empty: what the model says of one means nothing.
  const ink = inkOf(), empty = !Math.max(...ink), now = root.now = {ink, ...root.compute({ink})};
  cells.forEach((cell, i) => {
    cell.style.setProperty("--dark", ink[i] / 16);
    cell.ariaLabel = `row ${Math.floor(i / side)}, column ${i % side}: ink ${ink[i]} of 16`;
    cell.tabIndex = i === here ? 0 : -1;
  });
  tiles.forEach((tile, n) => {
    tile.style.setProperty("--look", empty ? 0 : now.looks[n]);
    tile.title = empty ? "" : percent(now.looks[n]);
    [...tile.children].forEach((dot, i) => dot.style.setProperty("--dark", ink[(Math.floor(n / across) * patch + Math.floor(i / patch)) * side + n % across * patch + i % patch] / 16));
  });
  const best = now.chances.indexOf(Math.max(...now.chances)), most = now.looks.indexOf(Math.max(...now.looks));
  lines.forEach((line, c) => {
    line.querySelector("i").style.width = `${empty ? 0 : 100 * now.chances[c]}%`;
    line.cells[2].textContent = empty ? "–" : percent(now.chances[c]);
    line.classList.toggle("dp-best", c === best && !empty);
  });
  tell(root, empty ? "Nothing is painted yet." : `It reads a ${best}, ${percent(now.chances[best])}. The class token looks most at patch row ${Math.floor(most / across)}, column ${most % across}: ${percent(now.looks[most])}.`);
};
const begin = i => {
  begun = i;
  dots = new Uint8Array(wide * wide);
  presets[i].forEach((ink, cell) => lay(cell, ink));
  buttons.forEach((button, j) => { button.ariaPressed = i === j; });
  show();
};
const buttons = pick(root, "preset", begin);
/** A round brush, from the last place to this one. */
const brush = event => {
  const box = table.getBoundingClientRect(), to = [(event.clientX - box.left) / box.width * wide, (event.clientY - box.top) / box.height * wide];
  const from = last ?? to, steps = Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1])) || 1;
  for (let k = 0; k <= steps; k++) {
    const [x, y] = from.map((a, axis) => a + (to[axis] - a) * k / steps);
    dots.forEach((_, at) => { if (Math.hypot(at % wide + .5 - x, Math.floor(at / wide) + .5 - y) < 2.8) dots[at] = +!rubbing; });
  }
  last = to;
  show();
};
table.setAttribute("role", "grid");
table.onpointerdown = event => {
  if (event.button) return;
  table.setPointerCapture(event.pointerId);
  last = null;
  brush(event);
};
table.onpointermove = event => { if (last && event.buttons) brush(event); };
table.onpointerup = table.onpointercancel = () => { last = null; };
table.onkeydown = event => {
  const move = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], " ": [], Enter: []}[event.key];
  if (!move) return;
  event.preventDefault();
  const at = [Math.floor(here / side), here % side];
  if (move.length) here = at.map((x, axis) => Math.max(0, Math.min(side - 1, x + move[axis]))).reduce((row, column) => row * side + column);
  else lay(here, rubbing ? 0 : {0: 8, 8: 16, 16: 0}[inkOf()[here]] ?? 16);
  show();
  cells[here].focus();
};
part("rub").onclick = () => { rubbing = !rubbing; part("rub").ariaPressed = rubbing; };
part("clear").onclick = () => { dots.fill(0); show(); };
part("anew").onclick = () => begin(begun);
begin(begun);
