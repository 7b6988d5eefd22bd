// What a reader does with the GPT of gpt.js.
const {words, most, heads} = data;
/** Probabilities at a temperature; 0 gives all to the likeliest. */
const chancesOf = (logits, temperature) => {
  const top = Math.max(...logits);
  return temperature ? softmax(logits.map(x => (x - top) / temperature)) : logits.map((_, i) => +(i === logits.indexOf(top)));
};
let seed = data.seed;
/** A number from 0 to 1 (mulberry32). */
const random = () => {
  seed = seed + 0x6D2B79F5 | 0;
  let t = Math.imul(seed ^ seed >>> 15, 1 | seed);
  t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
  return ((t ^ t >>> 14) >>> 0) / 2 ** 32;
};
root.draw = chances => {
  let rest = random();
  const i = chances.findIndex(p => (rest -= p) < 0);
  return i < 0 ? chances.indexOf(Math.max(...chances)) : i;
};

const part = partsOf(root), all = name => [...root.querySelectorAll(`.am-stage [data-part="${name}"]`)];
const story = part("story"), ids = new Map(words.map((word, i) => [word, i]).filter(([word]) => word[0] !== "<")), off = new Set();
const names = heads.map((count, layer) => Array.from({length: count}, (_, h) => `${layer}.${h}`)), states = () => names.map(layer => layer.map(name => !off.has(name)));
const quoted = word => `“\u2068${word.length > 20 ? `${word.slice(0, 20)}…` : word}\u2069”`;
let begun = story.value, asks = 0, ended = false;

/** The words of the field, and a sentence where the model cannot read them. */
const written = () => {
  const typed = story.value.toLowerCase().replace(/[.,]/g, " $& ").split(/\s+/u).filter(Boolean), strange = [...new Set(typed.filter(word => !ids.has(word)))];
  const like = [...ids.keys()].filter(word => strange.length === 1 && word.startsWith(strange[0])).slice(0, 4);
  const wrong = strange.length ? `The model does not know ${strange.slice(0, 3).map(quoted).join(", ")}${strange.length > 3 ? ` and ${strange.length - 3} more` : ""}. `
      + (like.length ? `It knows ${like.map(quoted).join(", ")}.` : `The ${ids.size} words that it knows stand under “Words that it knows”.`)
    : typed.length >= most ? `The model has room for ${most - 1} words, and these are ${typed.length}. Take some away.` : "";
  return {typed, wrong};
};
const picture = A => draw("svg", {viewBox: `0 0 ${A.length} ${A.length}`, "aria-hidden": true},
  ...A.flatMap((row, y) => row.flatMap((w, x) => w < .01 ? [] : draw("rect", {x, y, width: 1, height: 1, "fill-opacity": w.toFixed(2)}))),
  draw("rect", {class: "lm-asks", x: 0, y: asks, width: A.length, height: 1}));
/** Where one token looks: its row in every head. */
const point = i => {
  asks = i;
  const {tokens, maps} = root.now, lines = part("rows").querySelectorAll("tbody tr");
  part("rows").querySelector("b").textContent = tokens[i];
  all("token").forEach((button, j) => { button.ariaPressed = j === i; });
  maps.flat().forEach((A, h) => {
    [...lines[h].cells].slice(1).forEach((cell, j) => {
      cell.style = `--weight:${A[i][j]}`;
      cell.title = j > i ? "not seen" : `${tokens[j]}: ${shown(A[i][j])}`;
    });
    cards[h].querySelector(".lm-asks").setAttribute("y", i);
  });
};
/** Everything anew, in words with what was drawn before them. */
const show = (drawn = "") => {
  const {typed, wrong} = written(), temperature = +part("temperature").value;
  story.ariaInvalid = !!wrong;
  part("bars").style.opacity = wrong ? .4 : ""; // they are another story's
  if (wrong) return tell(root, wrong);
  const tokens = [words[data.start], ...typed], numbers = [data.start, ...typed.map(word => ids.get(word))], on = states();
  const moved = tokens.join(" ") !== root.now?.tokens.join(" "), {logits, maps} = root.compute({ids: numbers, on}), chances = chancesOf(logits.at(-1), temperature);
  const before = off.size ? chancesOf(root.compute({ids: numbers, on: names.map(layer => layer.map(() => true))}).logits.at(-1), temperature) : chances;
  root.now = {tokens, ids: numbers, on, logits, maps, chances, before};
  const larger = i => Math.max(chances[i], before[i]), best = words.map((_, i) => i).sort((i, j) => larger(j) - larger(i)).slice(0, data.bars).sort((i, j) => chances[j] - chances[i]);
  const bar = (p, className = "") => make("i", {style: `width:${(100 * p).toFixed(2)}%`, className});
  part("temperature-now").textContent = shown(temperature, 1);
  part("bars").replaceChildren(make("table", {}, make("caption", {}, off.size ? "Next word (outlined: all heads on)" : "Next word"), ...best.map(i => make("tr", {},
    make("th", {scope: "row"}, words[i]), make("td", {}, bar(chances[i]), ...off.size && before[i] > .005 ? [bar(before[i], "lm-before")] : []),
    make("td", {}, percent(chances[i])), make("td", {}, off.size ? percent(before[i]) : "")))));
  if (moved) {
    part("rows").querySelector("thead tr").replaceChildren(make("td"), ...tokens.map(token => make("th", {scope: "col"}, make("button", {type: "button", "data-part": "token"}, token))));
    part("rows").querySelectorAll("tbody tr").forEach(line => line.replaceChildren(line.cells[0], ...tokens.map(() => make("td"))));
    pick(root, "token", point).forEach(button => { button.onpointerenter = button.onfocus = button.onclick; });
    part("rows").querySelector(".am-wide").scrollLeft = 1e5;
    if (document.activeElement !== story) story.scrollLeft = 1e5;
    asks = typed.length;
  }
  maps.flat().forEach((A, h) => {
    const lit = on.flat()[h];
    cards[h].querySelector("svg").replaceWith(picture(A));
    cards[h].ariaPressed = lit;
    part("rows").querySelectorAll("tbody tr")[h].classList.toggle("lm-off", !lit);
  });
  point(asks);
  const likeliest = `Likeliest next: “${words[best[0]]}”, ${percent(chances[best[0]])}`;
  tell(root, drawn + (ended ? "The story ends. " : "") + (ended && drawn ? "" : off.size ? `${likeliest} (with all heads on: ${percent(before[best[0]])}).` : `${likeliest}.`));
};
/** Draws the next word and writes it; false where the story ends, or there is no room. */
const step = () => {
  const {typed, wrong} = written();
  if (wrong) return show();
  if (ended) return tell(root, "The story ends. Start anew, or write another beginning.");
  const {chances} = root.now, i = root.draw(chances), drawn = `Drawn: “${words[i]}”, ${percent(chances[i])}. `;
  ended = !ids.has(words[i]);
  if (!ended && typed.length === most - 1) return tell(root, `${drawn}The model has no room for it.`);
  if (!ended) story.value = [...typed, words[i]].join(" ");
  show(drawn);
  return !ended;
};
const begin = text => { story.value = begun = text; ended = false; show(); };
story.oninput = () => begin(story.value);
for (const button of all("example")) button.onclick = () => begin(button.textContent);
for (const button of all("word")) button.onclick = () => begin([...written().typed.filter(word => ids.has(word)), button.textContent].join(" "));
part("next").onclick = step;
part("on").onclick = () => { while (step()); };
part("anew").onclick = () => begin(begun);
part("temperature").oninput = () => show();
part("all").onclick = () => { off.clear(); show(); };
const cards = [...part("maps").querySelectorAll(".lm-head")].map((card, h) => {
  const name = names.flat()[h], button = make("button", {type: "button", className: "lm-head", ariaLabel: `head ${name}`}, ...card.childNodes);
  button.onclick = () => { off.delete(name) || off.add(name); show(); };
  card.replaceWith(button);
  return button;
});
part("known").after(root.querySelector(".am-say"));
show();
