const part = partsOf(root), {queries, keys, values, names, words, parts, x} = data;
/** Weights over the words and the blend of their values, for one query. */
root.compute = ({query, keys, values}) => {
  const {weights, output} = attention([query], keys, values);
  return {weights: weights[0], output: output[0]};
};
const sliders = [part("feature-0"), part("feature-1")];
const show = name => {
  const query = sliders.map(input => +input.value), {weights, output} = root.now = root.compute({query, keys, values});
  sliders.forEach((input, i) => { part(`feature-${i}-now`).textContent = short(query[i]); });
  part("asks").firstChild.textContent = `${name} ${tuple(query)}`;
  part("lines").innerHTML = weights.map((w, j) => `<path class="am-query" d="M170,${data.asks}L${x[j].toFixed(1)},${data.asked}" style="stroke-width:${.6 + 9 * w}"/>`).join("");
  [...part("weights").children].forEach((text, j) => { text.textContent = shown(weights[j]); });
  const most = weights.indexOf(Math.max(...weights));
  tell(root, `Most weight: “${words[most]}”, ${shown(weights[most])}. The answer: ${parts.map((p, i) => `${p} ${shown(output[i])}`).join(", ")}.`);
};
const buttons = pick(root, "question", i => {
  queries[i].forEach((q, c) => { sliders[c].value = q; });
  show(names[i]);
});
for (const input of sliders) input.oninput = () => {
  const query = sliders.map(one => +one.value), known = queries.findIndex(q => q.every((a, c) => a === query[c]));
  buttons.forEach((button, i) => { button.ariaPressed = i === known; });
  show(names[known] ?? "your own");
};
show(names[0]);
