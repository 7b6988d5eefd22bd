// A grid of numbers and, beside it, a line from each query to each key.
const SVG = "http://www.w3.org/2000/svg", tall = Math.max(m, n);
const cell = (i, j) => table.rows[i + 1].cells[j + 1];
const where = event => {
  const node = event.target.closest("th, tbody td");
  return node && [node.parentNode.rowIndex - 1, node.cellIndex - 1];
};
table.setAttribute("role", "grid");
table.ariaLabel = root.ariaLabel;
for (const node of table.querySelectorAll("th, tbody td")) node.tabIndex = -1;
cell(0, 0).tabIndex = 0;
table.onkeydown = go(-1);
table.onmouseover = event => where(event) && show(where(event));
table.onmouseleave = leave;
table.addEventListener("focusin", event => {
  cell(...at).tabIndex = -1;
  at = where(event);
  cell(...at).tabIndex = 0;
  show(at);
});

const ends = (tokens, position) => tokens.map((token, x) => make("span", {onmouseover: () => show(position(x))}, bdi(token)));
const left = ends(queries, i => [i, -1]), right = ends(keys, j => [-1, j]);
const svg = document.createElementNS(SVG, "svg");
svg.setAttribute("viewBox", `0 0 1 ${tall}`);
svg.setAttribute("preserveAspectRatio", "none");
svg.style.height = 24 * tall + "px";
const fan = make("div", {className: "av-fan"}, make("div", {}, ...left), svg, make("div", {}, ...right));
const title = make("div", {className: "av-ends"}, make("span", {}, "queries"), make("span", {}, "keys"));
box.after(make("div", {className: "av-lines", ariaHidden: "true", onmouseleave: leave}, title, fan));

let lines = [];
return {
  what: "map",
  keyed: table,
  move: next => cell(...next).focus(),
  mark(position) {
    for (const node of root.querySelectorAll(".av-on, .av-at")) node.classList.remove("av-on", "av-at");
    fan.classList.toggle("av-one", !!position);
    if (!position) return;
    const [i, j] = position;
    cell(i, j).classList.add("av-at");
    for (const node of [i < 0 || cell(i, -1), j < 0 || cell(-1, j), left[i], right[j]]) node?.classList?.add("av-on");
    for (const [line, query, key] of lines) {
      line.classList.toggle("av-in", i < 0 ? key === j : query === i);
      line.classList.toggle("av-this", query === i && key === j);
    }
  },
  paint() {
    lines = [];
    for (const i of range(m)) for (const j of range(n)) {
      const t = steps(i, j) / unit, node = cell(i, j);
      node.textContent = decimals(steps(i, j));
      node.style.background = `rgb(${colour(t)})`;
      node.classList.toggle("b", t >= 0.47);
      if (t < 0.02) continue;
      const line = document.createElementNS(SVG, "line");
      const place = {x2: 1, y1: i + (tall - m + 1) / 2, y2: j + (tall - n + 1) / 2, "stroke-width": 1 + 5 * t, "stroke-opacity": 0.15 + 0.85 * t};
      for (const name in place) line.setAttribute(name, place[name]);
      lines.push([line, i, j]);
    }
    svg.replaceChildren(...lines.map(([line]) => line));
  },
};
