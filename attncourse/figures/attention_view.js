// What every view needs: the weights, what is said of them, the choice of map, the keyboard.
// A view with numbers goes on in attention_grid.js, a large one in attention_picture.js.
const make = (tag, more = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), more);
  node.append(...children);
  return node;
};
const bdi = (token, className = "") => make("bdi", {className, textContent: token.trim() ? token : `‘${token}’`});
const range = size => [...Array(size).keys()];

const enliven = root => {
  root.dataset.ready = "";
  const data = JSON.parse(root.dataset.view), {queries, unit, layers, heads} = data;
  const keys = data.keys || queries, m = queries.length, n = keys.length;
  const box = root.querySelector(".av-scroll"), table = box.querySelector("table");
  const say = root.querySelector(".av-say"), pick = make("div", {className: "av-pick"});
  const folded = root.querySelector("details");
  box.replaceChildren(table);
  folded?.removeAttribute("open");
  // Where the reader is, and what is shown while no one points at anything.
  let layer = 0, head = 0, at = [0, 0], home = null, shown = null;
  if (data.start) head = data.start[0], at = home = [data.start[1], -1];

  const code = (i, j) => {
    const place = 2 * (((layer * heads.length + head) * m + i) * n + j);
    return data.weights.slice(place, place + 2);
  };
  const masked = (i, j) => code(i, j) === "zz";
  const steps = (i, j) => masked(i, j) ? 0 : parseInt(code(i, j), 36);
  const decimals = value => (value / unit).toFixed(unit > 100 ? 3 : 2);

  // A token that stands there twice is named with its position.
  const named = (tokens, i, kind) => ["“", bdi(tokens[i], kind),
    tokens.indexOf(tokens[i]) === tokens.lastIndexOf(tokens[i]) ? "”" : `” (${i})`];
  const query = i => named(queries, i, "av-q"), key = j => named(keys, j, "av-k");
  // Three of more that are alike are none that stand out.
  const largest = (size, name, value, most, none, all) => {
    const some = range(size).filter(value), best = some.sort((a, b) => value(b) - value(a)).slice(0, 3);
    if (some.length > 3 && value(some[0]) === value(some.at(-1))) return [`${all}${some.length === size ? "all" : some.length} alike, ${decimals(value(some[0]))}`];
    return best.length ? [most, ...best.flatMap((x, p) => [p ? ", " : "", ...name(x), " " + decimals(value(x))])] : [none];
  };
  const top = (i, most, none, all) => largest(n, key, j => steps(i, j), most, none, all);
  const tell = (i, j) =>
    i < 0 ? ["key ", ...key(j), ...largest(m, query, x => steps(x, j), " gets most from ", " gets nothing", " gets from ")]
    : ["query ", ...query(i), ...(j < 0 ? top(i, " attends most to ", " attends to no key", " attends to ")
      : masked(i, j) ? [" may not attend to key ", ...key(j), ", which is masked"]
      : [" attends to key ", ...key(j), " with weight " + decimals(steps(i, j))])];
  const names = () => [[layers, layer], [heads, head]].filter(([all]) => all.length > 1).map(([all, x]) => all[x]);

  // Position (i, j) is query i and key j; -1 stands for the header of a row or a column.
  const show = position => {
    shown = position;
    view.mark(position);
    say.replaceChildren(...(position ? [...names().map(name => name + ": "), ...tell(...position)]
      : [`Point at the ${view.what}, or press Tab and move with the arrow keys.`]));
  };
  const leave = () => show(document.activeElement?.closest(".av-keys") === view.keyed ? at : home);
  const go = least => event => {
    const [i, j] = at, all = event.ctrlKey || event.metaKey;
    const to = {
      ArrowUp: [i - 1, j], ArrowDown: [i + 1, j], ArrowLeft: [i, j - 1], ArrowRight: [i, j + 1],
      PageUp: [Math.max(0, i - 10), j], PageDown: [i + 10, j],
      Home: [all ? 0 : i, 0], End: [all ? m - 1 : i, n - 1],
    }[event.key];
    if (event.key === "Escape") show(home);
    if (!to || event.altKey) return;
    event.preventDefault();
    const next = [m, n].map((size, x) => Math.min(size - 1, Math.max(least, to[x])));
    if (next[0] + next[1] > -2) view.move(next);
  };
  const choice = (all, now, part, ariaLabel, use) => {
    if (all.length < 2) return;
    const select = make("select", {ariaLabel}, ...all.map((name, value) => make("option", {value}, name)));
    select.value = now;
    select.dataset.part = part;
    select.onchange = () => { use(+select.value); paint(); show(shown || at); };
    pick.append(select);
  };
  const paint = () => {
    if (table.caption) table.caption.textContent = names().join(" · ");
    view.paint();
  };

  const view = display();
  view.keyed.classList.add("av-keys");
  choice(layers, layer, "layer", "Layer to show", x => { layer = x; });
  choice(heads, head, "map", "Map to show", x => { head = x; });
  if (pick.firstChild) say.before(pick);
  paint();
  show(home);
  // What the box cannot show at once fades out at its right end.
  const fade = () => box.classList.toggle("av-more", box.scrollLeft + box.clientWidth < box.scrollWidth - 4);
  box.onscroll = fade;
  new ResizeObserver(fade).observe(box);

  function display() {
    DISPLAY()
  }
};
document.querySelectorAll(".attncourse-view[data-display=KIND]:not([data-ready])").forEach(enliven);
