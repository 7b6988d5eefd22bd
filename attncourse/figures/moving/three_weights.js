const part = partsOf(root), {points, centre, unit, middle} = data;
/** The blend of three points, and which of the two rules of a mixture the weights break. */
root.compute = ({points, weights}) => {
  const sum = weights.reduce((a, b) => a + b), negative = weights.flatMap((w, j) => w < 0 ? [j] : []);
  return {blend: times([weights], points)[0], sum, negative, fair: !negative.length && Math.abs(sum - 1) < 1e-9};
};
const at = ([x, y]) => [middle + unit * (x - centre[0]), middle - unit * (y - centre[1])];
const say = text => root.querySelector(".am-say").textContent = text;
const picture = part("blend").ownerSVGElement, [threads, grip] = part("blend").children;
let weights = data.weights;
const show = () => {
  const {blend, sum, negative, fair} = root.compute({points, weights}), [x, y] = at(blend);
  const out = x < 0 || y < 0 || x > 2 * middle || y > 2 * middle;
  threads.setAttribute("d", points.map(p => `M${at(p)}L${x},${y}`).join(""));
  grip.setAttribute("cx", x);
  grip.setAttribute("cy", y);
  grip.style.fill = fair ? "var(--ink)" : "var(--page)";
  const where = `The blend is (${blend.map(a => shown(a)).join(", ")})${out ? ", outside the picture" : ""}. `;
  say(where + (fair ? "No weight is below 0 and they sum to 1: a mixture, inside the triangle."
    : "No mixture: " + [...negative.map(j => `weight ${j} is negative`), ...Math.abs(sum - 1) < 1e-9 ? [] : [`the weights sum to ${shown(sum, 3)}, not to 1`]].join(", ") + "."));
};
const set = (next, typing) => {
  weights = next;
  weights.forEach((w, j) => {
    if (j !== typing) part(`weight-${j}`).value = shown(w, 3).replace(/\.?0+$/, "");
    part(`slide-${j}`).value = w;
  });
  show();
};
points.forEach((_, j) => {
  part(`weight-${j}`).oninput = event => {
    const fields = points.map((_, i) => typed(part(`weight-${i}`).value, -2, 2)), wrong = fields.findIndex(Number.isNaN);
    part("share").disabled = wrong >= 0;
    points.forEach((_, i) => part(`weight-${i}`).setAttribute("aria-invalid", Number.isNaN(fields[i])));
    wrong < 0 ? set(fields, j) : say(`Weight ${wrong}: a number from −2 to 2, please. The picture shows the last ones.`);
  };
  part(`slide-${j}`).oninput = event => set(weights.map((w, i) => i === j ? Number(event.target.value) : w));
});
/** The weights that sum to 1 and blend to a place of the picture. */
const weightsAt = (x, y) => {
  const [[a, b], [c, d], [e, f]] = points, u = (x - middle) / unit + centre[0], v = (middle - y) / unit + centre[1];
  const area = (d - f) * (a - e) + (e - c) * (b - f);
  const first = ((d - f) * (u - e) + (e - c) * (v - f)) / area, second = ((f - b) * (u - e) + (a - e) * (v - f)) / area;
  return [first, second, 1 - first - second].map(w => Math.max(-2, Math.min(2, w)));
};
const drag = event => {
  const {left, top, width} = picture.getBoundingClientRect(), scale = picture.viewBox.baseVal.width / width;
  const wanted = weightsAt((event.clientX - left) * scale, (event.clientY - top) * scale).map(w => Math.round(w * 1000) / 1000);
  set([wanted[0], wanted[1], Math.round((1 - wanted[0] - wanted[1]) * 1000) / 1000]);
};
picture.onpointerdown = event => { picture.setPointerCapture(event.pointerId); drag(event); };
picture.onpointermove = event => { if (event.buttons) drag(event); };
part("share").onclick = () => {
  const sum = weights.reduce((a, b) => a + b);
  Math.abs(sum) < 1e-9 ? say("They sum to 0, and nothing can be divided by that.") : set(weights.map(w => w / sum));
};
part("reset").onclick = () => set(data.weights);
show();
