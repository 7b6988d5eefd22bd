const part = partsOf(root), {zero, unit, full, begins, long, top, row} = data;
/** The norm of diag(p) − p pᵀ, its largest eigenvalue: where Σ p² / (p − λ) is 1, between the two largest p. */
const slope = p => {
  let [high, low] = [...p].sort((a, b) => b - a);
  for (let i = 0; i < 100 && high > low; i++) {
    const middle = (low + high) / 2;
    p.reduce((sum, x) => sum + x * x / (x - middle), 0) < 1 ? low = middle : high = middle;
  }
  return low;
};
/** Scores, weights and their three measures at a width, for a divisor. */
root.compute = ({draws, width, divisor}) => {
  const scores = draws.map(z => z * Math.sqrt(width) / divisor), weights = softmax(scores);
  const entropy = -weights.reduce((sum, p) => sum + (p && p * Math.log(p)), 0);
  return {scores, weights, largest: Math.max(...weights), entropy: entropy || 0, norm: slope(weights)};
};
const bar = (j, score, weight) => {
  const y = top + j * row + 3, side = score < 0 ? -1 : 1, end = zero + Math.max(-full, Math.min(full, score)) * unit;
  const tip = Math.abs(score) > full ? `l${side * 7},10l${-side * 7},10` : "v20";
  return `<path class="am-bar" d="M${zero},${y}H${end}${tip}H${zero}Z"/>`
    + `<text x="${zero - side * 5}" y="${y + 15}" text-anchor="${side > 0 ? "end" : "start"}">${shown(score, 1)}</text>`
    + `<path class="am-bar" d="M${begins},${y}h${weight * long}v20h${-weight * long}Z"/>`
    + `<text x="${begins + weight * long + 5}" y="${y + 15}">${shown(weight)}</text>`;
};
const names = ["1", "√d", "d"];
let chosen = 0;
const show = () => {
  const width = 2 ** part("width").value, d = data.draws;
  const all = [1, Math.sqrt(width), width].map(divisor => root.compute({draws: d, width, divisor}));
  const {scores, weights, largest, entropy, norm} = root.now = all[chosen];
  part("width-now").textContent = width;
  part("width").setAttribute("aria-valuetext", width);
  part("bars").innerHTML = scores.map((s, j) => bar(j, s, weights[j])).join("");
  root.querySelectorAll(".am-stage .am-measure").forEach((cell, i) => {
    cell.textContent = shown(all[i % 3][["largest", "entropy", "norm"][Math.floor(i / 3)]], 3);
    cell.classList.toggle("am-chosen", i % 3 === chosen);
  });
  tell(root, `Width ${width}, divided by ${names[chosen]}: the largest weight is ${shown(largest, 3)}, `
    + `the query listens to ${shown(Math.exp(entropy), 1)} of ${d.length} keys, and the slope of the softmax is ${shown(norm, 3)}.`);
};
/** A score that is held takes the width at which it comes nearest to the pointer. */
const drawing = part("bars").ownerSVGElement;
let key = 0;
const pointed = event => new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.getScreenCTM().inverse());
drawing.addEventListener("pointerdown", event => { key = Math.max(0, Math.min(data.draws.length - 1, Math.floor((pointed(event).y - top) / row))); });
dragged(drawing, event => {
  const now = +part("width").value, wanted = (pointed(event).x - zero) / unit;
  const score = power => { const width = 2 ** power; return data.draws[key] * Math.sqrt(width) / [1, Math.sqrt(width), width][chosen]; };
  const off = power => Math.abs(Math.max(-full, Math.min(full, score(power))) - wanted) + 1e-6 * Math.abs(power - now);
  part("width").value = Array.from({length: 11}, (_, power) => power).reduce((best, power) => off(power) < off(best) ? power : best);
  show();
});
pick(root, "divisor", i => { chosen = i; show(); });
part("width").oninput = show;
show();
