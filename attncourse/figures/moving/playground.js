// A sentence of the reader's own under one, two or three views.
const {features, words, strength, W_q, W_k, W_v, gives, most, pronouns} = data, known = new Map(Object.entries(words)), n = features.length;
const part = partsOf(root), find = name => root.querySelector(`.am-stage ${name}`), box = find(".pg-words"), field = part("sentence"), say = root.querySelector(".am-say");
let asks = 0, chips = [], shownTokens = [], chosen = false;
const choices = {views: 1, mask: 0};

const plain = token => token.toLowerCase().replace(/[^\p{L}\p{M}\p{N}]/gu, ""), knows = token => known.has(plain(token));
root.compute = ({tokens, temperature, scale, mask, views}) => {
  const bare = tokens.map(plain), own = [...new Set(bare.filter(word => !known.has(word)))];
  const X = bare.map(word => [...features.map((_, f) => known.get(word)?.includes(f)), ...own.map(other => other === word)].map(has => has ? strength : 0));
  const view = (W, from) => views < from ? X : times(X.map(row => row.slice(0, n)), W), K = view(W_k, 2);
  return {X, names: views > 2 ? gives : [...features, ...own.map(word => `“${word}”`)], ...attention(view(W_q, 2), K, view(W_v, 3), {
    scale: (scale ? 1 / Math.sqrt(K[0].length) : 1) / temperature,
    mask: tokens.map((_, i) => tokens.map((_, j) => mask === "causal" ? j <= i : mask !== "window" || Math.abs(i - j) < 2)),
  })};
};

/** From the asking word to the others: above a line of words, or between two lines. */
const arcs = () => {
  const from = chips[asks], middle = chip => chip.offsetLeft + chip.offsetWidth / 2, end = (chip, below) => chip.offsetTop + (below ? chip.offsetHeight + 1 : -1);
  find("svg")?.remove();
  box.prepend(draw("svg", {"aria-hidden": true}, ...chips.flatMap((to, j) => {
    const w = root.now.weights[asks][j], x = middle(from), tipX = middle(to), down = to.offsetTop - from.offsetTop, y = end(from, down > 0), tipY = end(to, down < 0);
    const turn = down ? (y + tipY) / 2 : y - Math.min(48, 14 + Math.abs(x - tipX) / 4);
    return to === from || w < .03 ? [] : draw("path", {d: `M${x},${y}C${x},${turn} ${tipX},${turn} ${tipX},${tipY}`, "stroke-width": 1 + 6 * w, "stroke-opacity": .25 + .75 * w});
  })));
};
const show = () => {
  const all = field.value.split(/\s+/u).filter(Boolean), tokens = all.slice(0, most), focused = chips.indexOf(document.activeElement), temperature = +part("temperature").value;
  if (tokens.join(" ") !== shownTokens.join(" ")) {
    const same = chosen ? tokens.indexOf(shownTokens[asks]) : -1, pronoun = tokens.findIndex(token => known.get(plain(token))?.some(f => pronouns.includes(f)));
    chosen = same >= 0;
    asks = chosen ? same : pronoun >= 0 ? pronoun : Math.max(0, Math.min(asks, tokens.length - 1));
    shownTokens = tokens;
  }
  root.now = tokens.length ? root.compute({tokens, temperature, scale: part("scale").checked, mask: ["none", "causal", "window"][choices.mask], views: choices.views + 1}) : null;
  const {weights = [], output = [], names} = root.now ?? {}, word = i => `“${tokens[i]}”`, a = weights[asks] ?? [], top = a.indexOf(Math.max(...a)), bdi = text => make("bdi", {}, text);
  const best = (i, many) => output[i].map((x, f) => [x, names[f]]).filter(([x]) => x > .005).sort((p, q) => q[0] - p[0]).slice(0, many);
  part("temperature-now").textContent = temperature;
  box.dir = getComputedStyle(field).direction;
  chips = tokens.map((token, i) => make("button", {type: "button", className: knows(token) ? "pg-chip" : "pg-chip pg-strange", title: knows(token) ? "" : "not among the words it knows", ariaPressed: i === asks, style: `--weight:${a[i]}`, onclick: () => { asks = i; chosen = true; show(); }}, bdi(token), make("b", {}, shown(a[i]))));
  box.replaceChildren(...chips);
  chips[focused]?.focus();
  arcs();
  find(".pg-gets").replaceChildren(...tokens.length ? [make("caption", {}, `${word(asks)} receives`), ...best(asks, 4).map(([x, name]) =>
    make("tr", {}, make("th", {scope: "row"}, name), make("td", {}, shown(x)), make("td", {}, make("i", {style: `width:${5 * x}em`}))))] : []);
  find(".pg-scroll").replaceChildren(make("table", {}, ...weights.map((row, i) => make("tr", {}, make("th", {scope: "row"}, bdi(tokens[i])),
    ...row.map((w, j) => make("td", {title: `${word(i)} to ${word(j)}: ${shown(w)}`, style: `--weight:${w}`})),
    make("td", {className: "am-value"}, best(i, 2).map(([x, name]) => `${shown(x)} ${name}`).join(", ") || "0")))));
  say.textContent = !tokens.length ? "There is no word yet. Write a sentence."
    : (all.length > most ? `The first ${most} of ${all.length} words are shown. ` : "") + (tokens.length < 2 ? "One word alone listens to itself."
    : a[top] - Math.min(...a) < .005 ? `${word(asks)} listens to all words alike: ${knows(tokens[asks]) ? "none is what it asks for" : "it is not among the words that are known, and asks for nothing"}.` : `${word(asks)} listens most to ${top === asks ? "itself" : word(top)} (${shown(a[top])}).`);
};
for (const name in choices) pick(root, name, i => { choices[name] = i; show(); });
part("offered").onchange = event => { field.value = event.target.value; chosen = false; show(); };
for (const name of ["sentence", "scale", "temperature"]) part(name).oninput = show;
box.after(say);
show();
new ResizeObserver(arcs).observe(box);
