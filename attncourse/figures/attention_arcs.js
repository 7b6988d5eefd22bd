// The sentence as chips, each a query and a key, and an arc from each query to each of its keys.
const choose = x => { home = [x, -1]; show(home); };
const chips = queries.map((token, x) => make("button", {
  type: "button", onclick: () => choose(x), onfocus: () => choose(x), onmouseover: () => show([x, -1]),
}, bdi(token)));
for (const chip of chips) chip.dataset.part = "word";
const shares = queries.map(() => make("span", {className: "av-share"}));
const row = make("div", {className: "av-chips", role: "group", ariaLabel: "Choose a query"},
  ...chips.map((chip, x) => make("div", {}, chip, shares[x])));
row.onkeydown = event => {
  const x = chips.indexOf(event.target), to = {
    ArrowLeft: x - 1, ArrowUp: x - 1, ArrowRight: x + 1, ArrowDown: x + 1, Home: 0, End: n - 1,
  }[event.key];
  if (to === undefined || event.altKey) return;
  event.preventDefault();
  chips[Math.min(n - 1, Math.max(0, to))].focus();
};
svg.setAttribute("preserveAspectRatio", "none");
svg.ariaHidden = "true";
const hint = "Choose a word as the query: its arcs lead to the keys, as thick as the weights.";
const figure = make("div", {className: "av-arcs", onmouseleave: leave}, svg, row);
(folded || box).before(make("p", {className: "av-note"}, hint), figure);

// In a line each chip has room for its letters, in a column all have the same. The drawing is as
// long as there is room in all, and the largest arc nearly 1 high.
const rooms = queries.map(token => 4 + Math.min(token.length, 16));
const before = x => column ? x : rooms.slice(0, x).reduce((sum, room) => sum + room, 0);
const middle = x => (before(x) + before(x + 1)) / 2;
let column = false;
row.style.gridTemplateColumns = rooms.map(room => `minmax(0, ${room}fr)`).join(" ");
const point = (along, high) => column ? `${1 - high} ${along}` : `${along} ${1 - high}`;
const path = (i, j) => {
  const loop = i === j ? 0.16 * (before(i + 1) - before(i)) : 0, from = middle(i) - loop, to = middle(j) + loop;
  const high = 0.4 + 0.9 * Math.abs(i - j) / n;
  return `M${point(from, 0)}C${point(from, high)} ${point(to, high)} ${point(to, 0)}`;
};
new ResizeObserver(() => {
  figure.classList.remove("av-tall");
  column = chips.some(chip => chip.offsetWidth > chip.parentNode.clientWidth - 3);
  figure.classList.toggle("av-tall", column);
  svg.setAttribute("viewBox", column ? `0 0 1 ${n}` : `0 0 ${before(n)} 1`);
  for (const [line, i, j] of lines) line.setAttribute("d", path(i, j));
}).observe(figure);

return {
  what: "words",
  wide: 11,
  path,
  mark(position) {
    const [i, j] = position || [-1, -1];
    chips.forEach((chip, x) => {
      const alone = i < 0 || j < 0;  // a query with all keys, or a key with all queries
      chip.className = !position ? "" : x === i ? "av-q" : x === j ? "av-k" : alone ? (i < 0 ? "av-q" : "av-k") : "";
      chip.ariaPressed = String(x === i);
      chip.tabIndex = x === (home ? home[0] : 0) ? 0 : -1;
      if (position) shade(shares[x], ...(i < 0 ? [x, j] : [i, x]));
      else shares[x].textContent = "";
    });
  },
};
