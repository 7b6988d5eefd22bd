const part = partsOf(root), {layers, heads} = data, count = layers * heads;
const NAMES = {pronoun: "the pronoun’s noun", previous: "the word before", first: "the first token", induction: "what came next last time", layer: "layer and head"};
let SIDE = 18, sentences = [data.one], chosen = 0, order = data.order, query = data.query, ranked = [], place = 0;
const bytesOf = one => one.bytes ??= Uint8Array.from(atob(one.maps), c => c.charCodeAt(0));
/** The weight that a head gives from one token to another, as it is kept. */
const weight = (one, head, i, j) => {
  const n = one.tokens.length;
  return j > i ? 0 : bytesOf(one)[head * n * (n + 1) / 2 + i * (i + 1) / 2 + j] / 255;
};
/** For every head how much of its attention falls where it is looked for, and their order: [head, score], the most first. */
root.compute = (one, order) => {
  const n = one.tokens.length, rows = Array.from({length: n}, (_, i) => i);
  const cells = {
    previous: i => i ? [i - 1] : [],
    first: i => i ? [0] : [],
    induction: i => rows.filter(j => j > 0 && j <= i && one.tokens[j - 1] === one.tokens[i]),
    pronoun: i => one.pair && i === one.pair[0] ? [one.pair[1]] : [],
  }[order] || (i => Array.isArray(order) && i === order[0] ? [order[1]] : []);
  const asked = rows.map(i => [i, cells(i)]).filter(([, keys]) => keys.length);
  const found = Array.from({length: count}, (_, head) => [head, asked.reduce((sum, [i, keys]) => sum
    + keys.reduce((all, j) => all + weight(one, head, i, j), 0), 0) / (asked.length || 1)]);
  return order === "layer" ? found : found.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
};
const name = head => `${Math.floor(head / heads)}.${head % heads}`, plain = token => token.trim() || token;
/** All maps as one mask, through which the ink of the page is seen. */
const field = one => {
  SIDE = innerWidth < 480 ? 16 : 18; // a phone holds figure and controls
  const n = one.tokens.length, across = Math.max(1, Math.floor((part("field").clientWidth || 360) / SIDE));
  const canvas = make("canvas", {width: across * SIDE, height: Math.ceil(count / across) * SIDE}), pen = canvas.getContext("2d");
  const picture = pen.createImageData(canvas.width, canvas.height), size = SIDE - 2;
  ranked.forEach(([head], k) => {
    const left = k % across * SIDE, top = Math.floor(k / across) * SIDE;
    for (let y = 0; y < size; y++) for (let x = 0; x < size; x++) {
      const i = Math.floor(y * n / size), j = Math.floor(x * n / size);
      picture.data[4 * ((top + y) * canvas.width + left + x) + 3] = j > i ? 0 : 24 + 231 * Math.sqrt(weight(one, head, i, j));
    }
  });
  pen.putImageData(picture, 0, 0);
  const box = part("field"), url = `url(${canvas.toDataURL()})`;
  box.across = across;
  box.replaceChildren(make("div", {className: "he-maps", style: `width:${canvas.width}px;height:${canvas.height}px;-webkit-mask-image:${url};mask-image:${url}`}), make("div", {className: "he-here"}));
};
const orders = one => {
  const option = (value, text) => make("option", {value, textContent: text});
  const own = one.tokens.slice(0, query + 1).map((token, j) => option(`${query},${j}`, `“${plain(token)}”`));
  part("order").replaceChildren(...Object.entries(NAMES).filter(([key]) => key !== "pronoun" || one.pair).map(([key, text]) => option(key, text)),
    make("optgroup", {label: `from “${plain(one.tokens[query])}” to`}, ...own));
  part("order").value = String(order);
};
/** Arcs from the word to those that it looks at, over as many lines as the words take. */
const arcs = (one, row) => {
  const box = part("words"), ground = box.getBoundingClientRect(), words = [...box.querySelectorAll("button")];
  const middle = words.map(word => { const r = word.getBoundingClientRect(); return [r.left - ground.left + r.width / 2, r.top - ground.top + 4]; });
  const lines = row.map((w, j) => {
    if (w < .03 || j === query) return "";
    const [x, y] = middle[query], [tx, ty] = middle[j], up = Math.min(y, ty) - Math.min(26, 8 + Math.abs(x - tx) / 8);
    return `<path d="M${x},${y}C${x},${up} ${tx},${up} ${tx},${ty}" style="stroke-width:${.8 + 5 * w};opacity:${.35 + .65 * w}"/>`;
  });
  box.querySelector("svg").innerHTML = lines.join("");
};
const show = () => {
  const one = sentences[chosen], [head, score] = ranked[place], row = one.tokens.map((_, j) => weight(one, head, query, j));
  part("name").textContent = `head ${name(head)}`;
  part("rank").value = place + 1;
  const box = part("field"), here = box.querySelector(".he-here");
  here.style.left = `${place % box.across * SIDE - 2}px`;
  here.style.width = here.style.height = `${SIDE}px`;
  here.style.top = `${Math.floor(place / box.across) * SIDE - 2}px`;
  [...part("words").querySelectorAll("button")].forEach((word, j) => {
    word.style.background = `color-mix(in srgb,var(--key) ${Math.round(row[j] * 60)}%,transparent)`;
    word.ariaPressed = String(j === query);
    word.ariaLabel = `${plain(one.tokens[j])}, ${shown(100 * row[j], 0)} %`;
  });
  arcs(one, row);
  root.now = {head, score, row, rank: place + 1};
  const most = row.map((w, j) => [w, j]).sort((a, b) => b[0] - a[0]).slice(0, 3).filter(([w]) => w >= .01);
  tell(root, `Head ${name(head)}: “${plain(one.tokens[query])}” looks at ${most.map(([w, j]) => `“${plain(one.tokens[j])}” ${shown(100 * w, 0)} %`).join(", ")}.`
    + (order === "layer" ? "" : ` Number ${place + 1} of ${count} in this order (${shown(score)}).`));
};
const sort = () => {
  const one = sentences[chosen];
  ranked = root.compute(one, order.includes?.(",") ? order.split(",").map(Number) : order);
  place = 0;
  field(one);
  show();
};
const read = () => {
  const one = sentences[chosen];
  query = one.pair ? one.pair[0] : one.tokens.length - 1;
  if (order === "pronoun" && !one.pair || order.includes(",")) order = one.pair ? "pronoun" : "induction";
  part("words").replaceChildren(draw("svg", {"aria-hidden": "true"}), ...one.tokens.map((token, j) => make("button",
    {type: "button", "data-part": "word", textContent: token, onclick: () => { query = j; orders(one); show(); }})));
  orders(one);
  sort();
};
/** The other sentences come as a script from the book's folder, once the figure is seen. */
let settle;
root.ready = new Promise(done => { settle = done; });
const fetched = () => {
  const kept = window.attncourseRealHeads;
  if (kept) { sentences = kept.sentences; part("sentence").replaceChildren(...sentences.map((one, i) => make("option", {value: i, textContent: one.tokens.join("")}))); part("sentence").value = chosen; settle(); }
  return kept;
};
const without = () => { part("sentence").replaceChildren(make("option", {value: 0, textContent: data.one.tokens.join("")})); part("sentence").title = "The other sentences are in the book’s folder, which is not here."; };
without();
const load = () => {
  if (fetched()) return;
  const above = document.documentElement.dataset.content_root;
  if (above === undefined) return settle();
  document.head.append(make("script", {src: `${above}_static/${data.script}`, onload: fetched, onerror: () => { without(); settle(); }}));
};
new IntersectionObserver((seen, watch) => { if (seen.some(one => one.isIntersecting)) { watch.disconnect(); load(); } }).observe(root);
part("sentence").onchange = event => { chosen = +event.target.value; read(); };
part("order").onchange = event => { order = event.target.value; sort(); };
part("rank").oninput = event => { place = +event.target.value - 1; show(); };
part("field").onclick = event => {
  const box = part("field"), ground = box.getBoundingClientRect();
  const at = Math.floor((event.clientY - ground.top) / SIDE) * box.across + Math.floor((event.clientX - ground.left) / SIDE);
  if (at >= 0 && at < count) { place = at; show(); }
};
let wide = 0;
new ResizeObserver(() => { if (part("field").clientWidth !== wide) { wide = part("field").clientWidth; field(sentences[chosen]); show(); } }).observe(root);
read();
