const part = partsOf(root), {words, sentences, said, middle, unit, far} = data;
/** The mean of each sentence's words, and the cosine of each two words; 0 for a vector of zeros. */
root.compute = ({vectors, sentences}) => {
  const unitRows = vectors.map(v => { const long = Math.hypot(...v) || 1; return v.map(x => x / long); });
  return {means: sentences.map(s => [0, 1].map(c => s.reduce((sum, i) => sum + vectors[i][c], 0) / s.length)),
    cosines: times(unitRows, transposed(unitRows))};
};
let vectors = data.vectors.map(v => [...v]), chosen = 0, ring = 1;
const at = ([x, y]) => [middle[0] + unit * x, middle[1] - unit * y], picture = part("arrows").ownerSVGElement;
const drawWords = () => part("arrows").innerHTML = vectors.map((v, i) => {
  const [x, y] = at(v), long = Math.hypot(...v) || 1, [a, b] = v.map(c => c / long);
  return arrow(...middle, x, y, i === chosen ? "ink" : "quiet", i === chosen ? 3 : 2)
    + `<text x="${x + 16 * a}" y="${y - 14 * b + 4}" text-anchor="${a > .3 ? "start" : a < -.3 ? "end" : "middle"}"></text>`;
}).join("");
// They stay while arrows are drawn anew: a finger’s events go to what it touched first.
const reaches = [...part("reaches").children];
const show = () => {
  const {means, cosines} = root.now = root.compute({vectors, sentences: [sentences[0], sentences[ring]]});
  drawWords();
  reaches.forEach((reach, i) => { const [x, y] = at(vectors[i]); reach.setAttribute("cx", x); reach.setAttribute("cy", y); });
  part("arrows").querySelectorAll("text").forEach((text, i) => text.textContent = words[i]);
  means.forEach((mean, k) => { const [x, y] = at(mean), mark = part("means").children[k]; mark.setAttribute("cx", x); mark.setAttribute("cy", y); });
  vectors[chosen].forEach((x, c) => { const name = "xy"[c]; part(name).value = x; part(`${name}-now`).textContent = shown(x); });
  const same = Math.hypot(means[0][0] - means[1][0], means[0][1] - means[1][1]) < 1e-9;
  const pairs = words.flatMap((w, i) => words.slice(i + 1).map((o, k) => `${w} and ${o} ${shown(cosines[i][i + 1 + k])}`));
  tell(root, `${same ? `Both means are ${tuple(means[0])}: one place.` : `The means are ${tuple(means[0])} and ${tuple(means[1])}: two places.`} Cosines: ${pairs.join(", ")}.`);
};
const move = (i, v) => { vectors[i] = v.map((x, c) => Math.round(20 * Math.min(Math.max(x, -far[c]), far[c])) / 20); show(); };
const buttons = pick(root, "word", i => { chosen = i; show(); });
pick(root, "ring", i => { ring = i + 1; show(); });
const slid = () => move(chosen, [Number(part("x").value), Number(part("y").value)]);
part("x").oninput = part("y").oninput = slid;
const place = event => {
  const box = picture.getBoundingClientRect(), scale = 2 * middle[0] / box.width;
  return [((event.clientX - box.left) * scale - middle[0]) / unit, (middle[1] - (event.clientY - box.top) * scale) / unit];
};
let held = -1;
const wordAt = ({target}) => Number(target.dataset.word ?? -1);
picture.addEventListener("pointerdown", event => {
  held = wordAt(event);
  if (held >= 0) buttons[held].click();
});
dragged(picture, event => { if (held >= 0) move(held, place(event)); }, event => wordAt(event) >= 0);
show();
