// A sentence of the reader's own under one, two or three views.
const {features, words, strength, W_q, W_k, W_v, gives, most} = data, known = new Map(Object.entries(words));
const stage = root.querySelector(".am-stage"), part = partsOf(root), box = stage.querySelector(".pg-words");
const find = name => stage.querySelector(name), n = features.length, MASKS = ["none", "causal", "window"];
let asks = data.asks, choices = {views: 1, mask: 0}, chips = [];

root.compute = ({tokens, temperature, scale, mask, views}) => {
  const bare = tokens.map(token => token.toLowerCase().replace(/[^\p{L}\p{M}\p{N}]/gu, ""));
  const own = [...new Set(bare.filter(word => !known.has(word)))];
  const X = bare.map(word => [...features.map((_, f) => known.get(word)?.includes(f) ? strength : 0), ...own.map(other => other === word ? strength : 0)]);
  const view = (W, from) => views < from ? X : times(X.map(row => row.slice(0, n)), W), K = view(W_k, 2);
  const seen = {none: () => true, causal: (i, j) => j <= i, window: (i, j) => Math.abs(i - j) < 2}[mask];
  return {X, names: views > 2 ? gives : [...features, ...own.map(word => `“${word}”`)], ...attention(view(W_q, 2), K, view(W_v, 3), {
    scale: (scale ? 1 / Math.sqrt(K[0].length) : 1) / temperature,
    mask: tokens.map((_, i) => tokens.map((_, j) => seen(i, j))),
  })};
};

const best = (row, names, many) => row.map((x, f) => [x, names[f]]).filter(([x]) => x > .005).sort((a, b) => b[0] - a[0]).slice(0, many);
const arcs = () => {
  const row = root.now?.weights[asks] ?? [], middle = chip => chip.offsetLeft + chip.offsetWidth / 2, above = chip => chip.offsetTop - 1, below = chip => chip.offsetTop + chip.offsetHeight + 1;
  find("svg")?.remove();
  box.append(draw("svg", {"aria-hidden": true}, ...row.flatMap((w, j) => {
    if (j === asks || w < .03) return [];
    const from = chips[asks], to = chips[j], x = middle(from), tipX = middle(to), lower = to.offsetTop - from.offsetTop;
    const y = lower > 0 ? below(from) : above(from), tipY = lower < 0 ? below(to) : above(to), up = lower ? (y + tipY) / 2 : y - Math.min(48, 14 + Math.abs(x - tipX) / 4);
    return [draw("path", {d: `M${x},${y}C${x},${up} ${tipX},${up} ${tipX},${tipY}`, "stroke-width": 1 + 6 * w, "stroke-opacity": .25 + .75 * w})];
  })));
};
const show = () => {
  const all = part("sentence").value.split(/\s+/u).filter(Boolean), tokens = all.slice(0, most), focused = chips.indexOf(document.activeElement);
  const temperature = +part("temperature").value, views = choices.views + 1;
  part("temperature-now").textContent = temperature;
  asks = Math.max(0, Math.min(asks, tokens.length - 1));
  root.now = tokens.length ? root.compute({tokens, temperature, scale: part("scale").checked, mask: MASKS[choices.mask], views}) : null;
  const {weights = [], output = [], names} = root.now ?? {}, word = i => `“${tokens[i]}”`, a = weights[asks] ?? [];
  chips = tokens.map((token, i) => make("button", {type: "button", className: `pg-chip${i === asks ? " pg-asks" : ""}`, ariaPressed: String(i === asks), style: `--weight:${a[i]}`, onclick: () => { asks = i; show(); }}, make("bdi", {}, token), make("b", {}, shown(a[i]))));
  box.replaceChildren(...chips);
  chips[focused]?.focus();
  arcs();
  find(".pg-gets").replaceChildren(...tokens.length ? [make("caption", {}, `${word(asks)} receives`), ...best(output[asks], names, 4).map(([x, name]) =>
    make("tr", {}, make("th", {scope: "row"}, name), make("td", {}, shown(x)), make("td", {}, make("i", {style: `width:${5 * x}em`}))))] : []);
  find(".pg-scroll").replaceChildren(make("table", {}, ...weights.map((row, i) => make("tr", {}, make("th", {scope: "row"}, make("bdi", {}, tokens[i])),
    ...row.map((w, j) => make("td", {title: `${word(i)} to ${word(j)}: ${shown(w)}`, style: `--weight:${w}`})),
    make("td", {className: "am-value"}, best(output[i], names, 2).map(([x, name]) => `${shown(x)} ${name}`).join(", ") || "0")))));
  const top = a.indexOf(Math.max(...a));
  root.querySelector(".am-say").textContent = !tokens.length ? "There is no word yet. Write a sentence."
    : (all.length > most ? `The first ${most} of ${all.length} words are shown. ` : "") + (tokens.length < 2 ? `One word alone listens to itself.`
    : a[top] - Math.min(...a) < .005 ? `${word(asks)} listens to all words alike.` : `${word(asks)} listens most to ${top === asks ? "itself" : word(top)} (${shown(a[top])}).`);
};
for (const name of ["views", "mask"]) pick(root, name, i => { choices[name] = i; show(); });
for (const name of ["sentence", "scale", "temperature"]) part(name).oninput = show;
box.after(root.querySelector(".am-say"));
show();
new ResizeObserver(arcs).observe(box);
