const part = partsOf(root), {models, lengths, roles} = data, chosen = ["first", "second"];
/** The bytes of cache a token of a text, and the operations for the token that comes next. */
root.compute = (name, n) => {
  const m = models[name], count = kind => m.layers.filter(one => one === kind).length, latents = count("latent");
  const near = Math.min(n, m.window ?? n), index = latents * (m.d_index ?? 0), keys = 2 * (m.n_kv_heads ?? 0) * (m.d_head ?? 0);
  const numbers = count("full") * n * keys + count("window") * near * keys
    + latents * n * ((m.d_latent ?? 0) + (m.d_turned ?? 0)) + count("state") * (m.d_state ?? 0);
  const heads = m.n_heads * m.d_head;
  const operations = 2e9 * m.active + 7 * count("state") * (m.d_state ?? 0) + 4 * heads * (count("full") * n + count("window") * near)
    + (latents ? 2 * latents * Math.min(n, m.top_k ?? n) * m.n_heads * (2 * m.d_latent + m.d_turned) + 2 * index * n * (m.n_index_heads ?? 0) : 0);
  return {bytes: 2 * numbers / n + 2 * index, operations};
};
const rounded = x => x >= 9.95 ? Math.floor(x + .5).toLocaleString("en-US") : x >= .995 ? x.toFixed(1) : x.toFixed(2);
const line = (y, words) => draw("text", {x: 116, y}, words);
const show = () => {
  const names = chosen.map(which => part(which).value), both = names.map(name => models[name]);
  const costs = names.map(name => lengths.map(n => root.compute(name, n)));
  part("strips").replaceChildren(...both.flatMap(({layers}, k) => layers.map((kind, i) => {
    const step = 280 / layers.length, low = kind === "window" || kind === "state" ? 8 : 0;
    return draw("rect", {x: 56 + i * step, y: [2, 22][k] + low, width: step - 1, height: 16 - low, style: `fill:var(--${roles[kind]})`});
  })));
  const differ = both[0].words.map((words, i) => words !== both[1].words[i]);
  part("words").replaceChildren(...both[0].words.flatMap((words, i) => {
    const y = 44 + 31 * i;
    return differ[i] ? [draw("rect", {class: "tm-lit", x: 2, y: y - 1, width: 336, height: 30, rx: 6}), line(y + 12, words), line(y + 25, both[1].words[i])]
      : [line(y + 18, words)];
  }));
  const cells = [...part("costs").querySelectorAll("tbody td")];
  [["bytes", 1e3], ["operations", 1e9]].forEach(([key, size], half) => costs.forEach((own, k) => own.forEach((cost, i) => {
    cells[(2 * k + half) * lengths.length + i].textContent = rounded(cost[key] / size);
  })));
  root.now = {names, differ, costs};
  const last = lengths.at(-1), whole = costs.map(own => rounded(own.at(-1).bytes * last / 1e9));
  tell(root, `They differ in ${differ.filter(Boolean).length} of ${differ.length} parts. ${last.toLocaleString("en-US")} tokens take `
    + `${whole[0]} and ${whole[1]} GB.`);
};
chosen.forEach(which => part(which).onchange = show);
show();
