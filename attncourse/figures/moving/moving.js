// What the moving figures share. Matrices are arrays of rows.
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const transposed = A => A[0].map((_, j) => A.map(row => row[j]));
const times = (A, B) => { const columns = transposed(B); return A.map(row => columns.map(column => dot(row, column))); };
/** The weights of a row of scores over the keys that are allowed; all 0 where none is. */
const softmax = (scores, allowed = scores.map(() => true)) => {
  const top = Math.max(...scores.filter((_, j) => allowed[j]));
  const raw = scores.map((s, j) => allowed[j] ? Math.exp(s - top) : 0), sum = raw.reduce((a, b) => a + b, 0);
  return raw.map(r => sum ? r / sum : 0);
};
/** Scores, weights and blend of scaled dot-product attention; mask[i][j] is true where allowed. */
const attention = (Q, K, V, {scale = 1 / Math.sqrt(K[0].length), mask} = {}) => {
  const scores = times(Q, transposed(K)).map(row => row.map(s => s * scale));
  const weights = scores.map((row, i) => softmax(row, mask?.[i]));
  return {scores, weights, output: times(weights, V)};
};
/** An element with properties, attributes where a name has a hyphen, and children. */
const make = (name, given = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(given)) key.includes("-") ? node.setAttribute(key, value) : node[key] = value;
  node.append(...children);
  return node;
};
/** The same in SVG; all properties are attributes. */
const draw = (name, given = {}, ...children) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(given)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
/** What finds a part of a figure by the name that controls.py gave it. */
const partsOf = root => name => root.querySelector(`.am-stage [data-part="${name}"]`);
/** What the figure says, for everybody and for screen readers; no line breaks inside a number. */
const tell = (root, text) => { root.querySelector(".am-say").textContent = text.replaceAll(" %", "\u00a0%").replaceAll(" · 10", "\u00a0·\u00a010"); };
/** An arrow between two points, in the colour of a role, as markup. */
const arrow = (x, y, tipX, tipY, role, thick = 1.5) => {
  const long = Math.hypot(tipX - x, tipY - y) || 1, size = Math.min(6 + thick, long) / long;
  const dx = (tipX - x) * size, dy = (tipY - y) * size, left = tipX - dx, top = tipY - dy;
  return `<path style="stroke:var(--${role});stroke-width:${thick}" d="M${x},${y}L${tipX},${tipY}"/><path class="ad-head" `
    + `style="fill:var(--${role})" d="M${tipX},${tipY}L${left - dy / 2},${top + dx / 2}L${left + dy / 2},${top - dx / 2}Z"/>`;
};
/** A number as the page writes it. */
const shown = (x, digits = 2) => {
  const text = x.toFixed(digits);
  return text.replace("-", +text ? "−" : "");
};
/** A probability as the page writes it: a small one is not nothing. */
const percent = p => Number.isNaN(p) ? "–" : p && p < .0005 ? "<\u00a00.1\u00a0%" : `${shown(100 * p, p && p < .0995 ? 1 : 0)}\u00a0%`;
/** A number with at most two decimals, and a row of such numbers in brackets. */
const short = x => String(+x.toFixed(2)).replace("-", "−"), tuple = row => `(${row.map(short).join(", ")})`;
/** Lets one button of a choice be down; arrow keys move; calls then with its number. Returns the buttons. */
const pick = (root, name, then) => {
  const buttons = [...root.querySelectorAll(`.am-stage [data-part="${name}"]`)];
  buttons.forEach((button, i) => {
    button.onclick = () => { buttons.forEach((other, j) => other.ariaPressed = i === j); then(i); };
    button.onkeydown = event => {
      const to = buttons[i + {ArrowRight: 1, ArrowLeft: -1}[event.key]];
      if (to) { event.preventDefault(); to.focus(); to.click(); }
    };
  });
  return buttons;
};
/** Lets a picture be dragged: by mouse, and by a finger where `near` says that it is on what is held, at once; by a finger elsewhere sideways or with a tap, since a page is scrolled up and down. */
const dragged = (picture, move, near = () => false) => {
  let from = null, held = false;
  (picture.ownerSVGElement || picture).classList.add("am-drag");
  // Else the page would scroll, and the browser take the finger away.
  picture.addEventListener("touchstart", event => { if (event.touches.length === 1 && near(event.touches[0])) event.preventDefault(); }, {passive: false});
  picture.onpointerdown = event => {
    picture.setPointerCapture(event.pointerId);
    [from, held] = [event, event.pointerType !== "touch" || near(event)];
    if (held) move(event);
  };
  picture.onpointermove = event => {
    if (!event.buttons || !from) return;
    held ||= Math.abs(event.clientX - from.clientX) > Math.abs(event.clientY - from.clientY) + 4;
    if (held) move(event);
  };
  picture.onpointercancel = () => { from = null; };
  picture.onpointerup = event => { if (from && !held) move(event); };
};
/** What was typed as a number from low to high, or NaN. */
const typed = (text, low = -100, high = 100) => {
  const number = text.trim() ? +text.replace("−", "-").replace(",", ".") : NaN;
  return number >= low && number <= high ? number : NaN;
};
/** Hands every figure of this name that does not move yet to its script; paper gets the first state. */
const start = (name, begin) => {
  for (const root of document.querySelectorAll(`.attncourse-moving[data-figure="${name}"]:not([data-moves])`)) {
    root.dataset.moves = "";
    const stage = root.querySelector(".am-stage"), first = stage.cloneNode(true);
    first.className = "am-first";
    const print = matchMedia("print");
    print.onchange = () => print.matches ? stage.after(first) : first.remove();
    addEventListener("beforeprint", () => stage.after(first));
    addEventListener("afterprint", () => first.remove());
    begin(root, JSON.parse(root.querySelector("script[type='application/json']").textContent));
  }
};
/** Writes a number into a cell, which it colours the more the larger its strength, from 0 to 1. */
const fill = (cell, role, strength, number, digits) => {
  cell.textContent = shown(number, digits);
  cell.style.background = `color-mix(in srgb,var(--${role}) ${Math.abs(strength) * 45}%,transparent)`;
};
