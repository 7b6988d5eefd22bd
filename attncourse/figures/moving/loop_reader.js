// Chapter 16's ReceptorClassifier; its block is that of transformer.js.
const part = partsOf(root), {alphabet, turns, most, loops, motifs, classes, heads} = data;
/** Probabilities of the classes, and the pooling query's attention. */
root.compute = ({loop}) => {
  const letters = [...loop].map(letter => W["letters.weight"][alphabet.indexOf(letter) + 1]);
  const {x} = stack(plus(letters, W["positions.table"]), heads.map(h => Array(h).fill(true)), undefined);
  const {weights, output} = attention(W["pooling.queries"], linear(x, "pooling.W_k"), linear(x, "pooling.W_v"));
  return {chances: softmax(linear(output, "out")[0]), weights: weights[0]};
};
/** By how much log p of the answer falls, on average, when a letter is exchanged for four others. */
root.falls = loop => {
  const {chances} = root.compute({loop}), best = chances.indexOf(Math.max(...chances)), log = p => Math.log(p + 1e-12);
  return [...loop].map((letter, k) => turns.reduce((sum, turn) => {
    const other = alphabet[(alphabet.indexOf(letter) + turn) % 20];
    return sum + log(chances[best]) - log(root.compute({loop: loop.slice(0, k) + other + loop.slice(k + 1)}).chances[best]);
  }, 0) / turns.length);
};
const field = part("loop");
const write = (name, loop, numbers, lined) => {
  const top = Math.max(...numbers, 1e-9);
  part(name).replaceChildren(...[...loop].map((letter, k) => make("button", {type: "button", "data-part": "letter", ariaLabel: `place ${k}, ${letter}: exchange`,
    className: lined.has(k) ? "lr-motif" : "", style: `--strong:${Math.max(0, numbers[k]) / top}`, onclick: () => exchange(name, k)}, letter)));
};
const show = () => {
  const loop = field.value.trim().toUpperCase(), strange = [...new Set([...loop].filter(letter => !alphabet.includes(letter)))];
  const wrong = !loop ? "Write a loop: letters of amino acids." : strange.length ? `No amino acid: ${strange.slice(0, 3).join(", ")}. The letters are ${alphabet}.`
    : loop.length > most ? `The network has room for ${most} letters, and these are ${loop.length}.` : "";
  field.ariaInvalid = !!wrong;
  if (wrong) return tell(root, wrong);
  const {chances, weights} = root.compute({loop}), falls = root.falls(loop);
  root.now = {loop, chances, weights, falls};
  const lined = new Set(motifs.flatMap(motif => [...loop].flatMap((_, k) => loop.startsWith(motif, k) ? [...motif].map((_, i) => k + i) : [])));
  write("looks", loop, weights, lined);
  write("falls", loop, falls, lined);
  part("bars").querySelectorAll("tr").forEach((line, c) => {
    line.querySelector("i").style.width = `${100 * chances[c]}%`;
    line.cells[2].textContent = percent(chances[c]);
  });
  const largest = row => row.indexOf(Math.max(...row)), best = largest(chances), look = largest(weights), fall = largest(falls);
  given.forEach((button, k) => { button.ariaPressed = loops[k] === loop; });
  tell(root, `It says ${classes[best]}, ${percent(chances[best])}. It looks most at ${loop[look]} (place ${look}), and the answer depends most on ${loop[fall]} (place ${fall}).`);
};
/** The letter at place k becomes another one, and keeps the focus. */
const exchange = (name, k) => {
  const {loop} = root.now;
  field.value = loop.slice(0, k) + alphabet[(alphabet.indexOf(loop[k]) + 4) % 20] + loop.slice(k + 1);
  show();
  part(name).children[k].focus();
};
const given = pick(root, "given", k => { field.value = loops[k]; show(); });
field.oninput = show;
show();
