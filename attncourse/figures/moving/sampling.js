const part = partsOf(root), {logits, tokens, first, plain} = data;
/** Logits divided by the temperature and cut by top-k, then top-p (null: −∞), and the shares of what is left. */
root.compute = ({logits, temperature, k, p}) => {
  const scores = logits.map(s => s / (temperature || 1)), order = logits.map((_, i) => i).sort((a, b) => logits[b] - logits[a] || a - b);
  const byK = order.slice(0, temperature ? k : 1), among = softmax(scores, scores.map((_, i) => byK.includes(i)));
  let before = 0;
  const kept = byK.filter(i => { const stays = p >= 1 || before < p; before += among[i]; return stays; });
  const allowed = scores.map((_, i) => kept.includes(i));
  return {filtered: scores.map((s, i) => allowed[i] ? s : null), shares: softmax(scores, allowed)};
};
const names = ["temperature", "k", "p"], lines = [...part("bars").querySelectorAll("tr")];
const show = (more = "") => {
  const [temperature, k, p] = names.map(name => +part(name).value);
  const {filtered, shares} = root.now = root.compute({logits, temperature, k, p});
  lines.forEach((line, i) => {
    line.querySelector("b").style.width = `${100 * shares[i]}%`;
    line.lastChild.textContent = `${shown(100 * shares[i], 1)} %`;
    line.classList.toggle("am-off", filtered[i] === null);
  });
  names.forEach(name => part(`${name}-now`).value = part(name).value);
  const best = shares.indexOf(Math.max(...shares)), left = filtered.filter(s => s !== null).length;
  tell(root, more || `${left} of ${tokens.length} tokens can come. The likeliest, “${tokens[best]}”, has ${shown(100 * shares[best], 1)} %.`);
};
names.forEach(name => part(name).oninput = () => show());
part("draw").onclick = () => {
  const drawn = Array.from({length: 10}, () => {
    let left = Math.random(), {shares} = root.now, last = 0;
    for (let i = 0; i < shares.length && left >= 0; i++) if (shares[i]) { last = i; left -= shares[i]; }
    return tokens[last];
  });
  show(`Drawn: ${drawn.join(" ")}.`);
};
part("reset").onclick = () => { names.forEach((name, i) => part(name).value = first[i]); show(); };
show();
