const part = partsOf(root), {sizes, labels} = data, names = ["turned", "rms", "shared", "gated", "bare"], on = {};
/** The numbers of attention, feed-forward layer and norms in a block, of the tables, of all. */
root.compute = ({sizes: {d_model: d, n_heads, n_kv_heads, n_layers, d_ff, n_vocab, max_length}, turned, rms, shared, gated, bare}) => {
  const d_kv = shared ? d / n_heads * n_kv_heads : d, hidden = gated ? d_ff : 4 * d, inner = gated ? 2 : 1, norm = rms ? d : 2 * d;
  const attention = 2 * d * d + 2 * d * d_kv + (bare ? 0 : 2 * d + 2 * d_kv);
  const feed = (inner + 1) * d * hidden + (bare ? 0 : inner * hidden + d);
  const tables = n_vocab * d + (turned ? 0 : max_length * d);
  return {attention, feed, norms: 2 * norm, tables, all: n_layers * (attention + feed + 2 * norm) + norm + tables};
};
const count = n => n.toLocaleString("en-US");
const show = last => {
  const before = root.now, now = root.now = root.compute({sizes, ...on});
  for (const [name, y, words] of labels) part(`label-${name}-${y}`).innerHTML = words[+!!on[name]];
  names.forEach(name => part(`part-${name}`).ariaPressed = String(!!on[name]));
  part("numbers").querySelectorAll("td").forEach((cell, i) => {
    const [key, number] = Object.entries(now)[i];
    cell.textContent = count(number);
    cell.classList.toggle("bt-changed", !!before && before[key] !== number);
  });
  const there = names.filter(name => on[name]).length, change = before ? now.all - before.all : 0;
  tell(root, !last ? "As in chapters 12 and 13. Change a part and look at its numbers."
    : `${there === names.length ? "Today’s block" : `${there} of ${names.length} parts are today's`}: ${count(now.all)} numbers, `
    + (change ? `${count(Math.abs(change))} ${change < 0 ? "fewer" : "more"} than before.` : "as many as before."));
};
names.forEach(name => part(`part-${name}`).onclick = () => { on[name] = !on[name]; show(name); });
show();
