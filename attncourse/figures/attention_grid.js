// A grid of numbers and, beside it, a line from each query to each key.
const SVG = "http://www.w3.org/2000/svg";
const svg = document.createElementNS(SVG, "svg");
const cell = (i, j) => table.rows[i + 1].cells[j + 1];
const where = event => {
  const node = event.target.closest("th, tbody td");
  return node && [node.parentNode.rowIndex - 1, node.cellIndex - 1];
};
table.setAttribute("role", "grid");
table.ariaLabel = root.ariaLabel;
for (const node of table.querySelectorAll("th, tbody td")) node.tabIndex = -1;
cell(...at).tabIndex = 0;
table.onkeydown = go(-1);
table.onmouseover = event => where(event) && show(where(event));
table.onmouseleave = leave;
table.addEventListener("focusin", event => {
  cell(...at).tabIndex = -1;
  at = where(event);
  cell(...at).tabIndex = 0;
  show(at);
});

// From 0.43 on black is easier to read in dark mode, from 0.625 on white in light mode.
const shade = (node, i, j) => {
  const t = steps(i, j) / unit;
  node.textContent = masked(i, j) ? "–" : decimals(steps(i, j));
  node.style.setProperty("--w", 100 * steps(i, j) / unit + "%");
  for (const [name, so] of [["b", t >= 0.43], ["c", t >= 0.625], ["x", masked(i, j)]]) node.classList.toggle(name, so);
};
let lines = [];
const drawing = draw();
return {
  what: drawing.what,
  keyed: table,
  move: next => cell(...next).focus(),
  mark(position) {
    for (const node of root.querySelectorAll(".av-on, .av-at")) node.classList.remove("av-on", "av-at");
    svg.classList.toggle("av-one", !!position);
    drawing.mark(position);
    if (!position) return;
    const [i, j] = position;
    cell(i, j).classList.add("av-at");
    for (const node of [i < 0 || cell(i, -1), j < 0 || cell(-1, j)]) node.classList?.add("av-on");
    for (const [line, query, key] of lines) {
      line.classList.toggle("av-in", i < 0 ? key === j : query === i);
      line.classList.toggle("av-this", query === i && key === j);
    }
  },
  paint() {
    lines = [];
    for (const i of range(m)) for (const j of range(n)) {
      const t = steps(i, j) / unit;
      shade(cell(i, j), i, j);
      if (t < 0.02) continue;
      const line = document.createElementNS(SVG, "path");
      const look = {d: drawing.path(i, j), "stroke-width": 1 + drawing.wide * t, "stroke-opacity": 0.15 + 0.85 * t};
      for (const name in look) line.setAttribute(name, look[name]);
      lines.push([line, i, j]);
    }
    svg.replaceChildren(...lines.map(([line]) => line));
  },
};

function draw() {
  DRAWING()
}
