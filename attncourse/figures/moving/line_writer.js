// Translators of characters in the page: two GRUs and, where there is one, the additive score. It reads like tasks/translator.py.
const {reads, writes, attends, months, longest, wide, top, bottom} = data, part = partsOf(root);
const sigmoid = x => 1 / (1 + Math.exp(-x)), through = (x, name) => linear([x], name)[0];
/** One step of a GRU: reset, keep and proposal, in torch's order. */
const step = (name, way, x, h) => {
  const d = h.length, read = through(x, `${name}.ih${way}`), own = through(h, `${name}.hh${way}`);
  return h.map((old, i) => {
    const reset = sigmoid(read[i] + own[i]), keep = sigmoid(read[d + i] + own[d + i]);
    const fresh = Math.tanh(read[2 * d + i] + reset * own[2 * d + i]);
    return (1 - keep) * fresh + keep * old;
  });
};
/** What model number m writes for the ids that it reads, and each letter's weights over them. */
root.compute = ({ids, m}) => {
  const name = part => `${m}.${part}`, d = W[name("bridge.bias")].length, read = ids.map(id => W[name("embed_source.weight")][id]);
  const walk = (way, xs) => { let h = Array(d).fill(0); return xs.map(x => h = step(name("encoder"), way, x, h)); };
  const there = walk("", read), back = walk("_reverse", [...read].reverse()).reverse();
  const states = there.map((h, i) => [...h, ...back[i]]), last = [...there.at(-1), ...back[0]], written = [], weights = [];
  const keys = attends[m] && linear(states, name("score.W_k"));
  let h = through(last, name("bridge")).map(Math.tanh), id = 0;
  do {
    h = step(name("decoder"), "", W[name("embed_target.weight")][id], h);
    let context = last;
    if (keys) {
      const query = through(h, name("score.W_q"));
      const row = softmax(keys.map(key => through(key.map((k, c) => Math.tanh(k + query[c])), name("score.w"))[0]));
      weights.push(row);
      context = times([row], states)[0];
    }
    const logits = through(through([...h, ...context], name("join")).map(Math.tanh), name("out"));
    id = logits.indexOf(Math.max(...logits));
    if (id) written.push(id);
  } while (id && written.length < longest);
  return {written, weights};
};
/** What is to be written for the days of a line. */
root.right = line => [...line.matchAll(/(\d+)(?:st|nd|rd|th)?(?: of)? ([a-z]{3})/g)].filter(found => months.includes(found[2]))
  .map(([, day, name]) => [months.indexOf(name) + 1, +day].map(x => String(x).padStart(2, "0")).join("-")).join(" ");
const place = (i, n) => wide / 2 + (i - (n - 1) / 2) * Math.min(18, (wide - 8) / n), letters = text => text.replaceAll(" ", "␣");
const row = (text, y, at, goal) => [...text].map((c, i) => {
  const x = place(i, at < 0 ? text.length : longest), wrong = at >= 0 && goal && c !== goal[i];
  return (i === at ? `<rect class="lw-now" x="${x - 8}" y="${y - 16}" width="16" height="22" rx="3"/>` : "")
    + `<text x="${x}" y="${y}" text-anchor="middle"${wrong ? ' class="lw-wrong"' : ""}>${letters(c)}</text>`;
}).join("");
const between = (n, row, at) => {
  const x = place(at, longest), middle = wide / 2;
  if (!row) return `<path class="lw-all" d="M${place(0, n)},${bottom - 20}L${middle},108L${place(n - 1, n)},${bottom - 20}Z"/>`
    + `<path class="lw-curve" style="stroke-width:4" d="M${middle},84C${middle},62 ${x},66 ${x},${top + 8}"/>`
    + `<rect class="lw-vector" x="${middle - 56}" y="82" width="112" height="26" rx="6"/><text x="${middle}" y="100" text-anchor="middle">one vector</text>`;
  return row.map((w, j) => w < .02 ? "" : `<path class="lw-curve" style="stroke-width:${1 + 7 * w};stroke-opacity:${.25 + .7 * w}" `
    + `d="M${x},${top + 8}C${x},90 ${place(j, n)},96 ${place(j, n)},${bottom - 16}"/>`).join("");
};
const line = part("line"), letter = part("letter"), offered = root.querySelectorAll('.am-stage [data-part="example"]');
let chosen = 0;
/** Reads the line anew; begins at the letter that is not as it should be. */
const write = () => {
  const text = line.value.toLowerCase(), strange = [...text].filter(c => !reads.includes(c));
  if (!text.trim() || strange.length) {
    tell(root, strange.length ? `It does not know “${strange[0]}”: it reads small letters, digits, commas, slashes and spaces.` : "Write a day, such as 7 aug.");
    return;
  }
  const {written, weights} = root.compute({ids: [...text].map(c => reads.indexOf(c) + 1), m: chosen}), words = written.map(id => writes[id - 1]).join("");
  root.now = {text, words, weights, goal: root.right(text)};
  const wrong = [...words].findIndex((c, i) => root.now.goal && c !== root.now.goal[i]);
  letter.max = Math.max(words.length, 1);
  letter.value = Math.max(wrong, 0) + 1;
  show();
};
const show = () => {
  const {text, words, weights, goal} = root.now, at = letter.value - 1, looks = weights[at];
  part("letter-now").textContent = letter.value;
  part("read").innerHTML = row(text, bottom, -1);
  part("written").innerHTML = row(words.slice(0, at + 1), top, at, goal);
  part("between").innerHTML = between(text.length, looks, at);
  const most = looks && looks.indexOf(Math.max(...looks));
  tell(root, `It writes ${words || "nothing"}.${!goal ? "" : words === goal ? " That is right." : ` Right is ${goal}.`} `
    + (looks ? `Letter ${at + 1} looks most at “${text[most]}”, ${shown(looks[most])}.` : "Every letter is made of the same vector."));
};
pick(root, "model", m => { chosen = m; write(); });
line.oninput = write;
for (const one of offered) one.onclick = () => { line.value = one.textContent; write(); };
letter.oninput = show;
part("next").onclick = () => { letter.value = letter.value === letter.max ? 1 : +letter.value + 1; show(); };
write();
