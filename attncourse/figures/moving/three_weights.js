const part = partsOf(root), {points, centre, inverse, unit, middle} = data;
/** The blend of three points, and which of the two rules of a mixture the weights break. */
root.compute = ({points, weights}) => {
  const sum = weights.reduce((a, b) => a + b), negative = weights.flatMap((w, j) => w < 0 ? [j] : []);
  return {blend: times([weights], points)[0], sum, negative, fair: !negative.length && Math.abs(sum - 1) < 1e-9};
};
const fields = points.map((_, j) => part(`weight-${j}`)), picture = part("blend").ownerSVGElement, [threads, grip] = part("blend").children;
const at = ([x, y]) => [middle + unit * (x - centre[0]), middle - unit * (y - centre[1])];
let weights;
const show = () => {
  const {blend, sum, negative, fair} = root.now = root.compute({points, weights}), [x, y] = at(blend);
  threads.setAttribute("d", points.map(p => `M${at(p)}L${x},${y}`).join(""));
  grip.setAttribute("cx", x);
  grip.setAttribute("cy", y);
  grip.style.fill = fair ? "var(--ink)" : "var(--page)";
  const broken = negative.map(j => `weight ${j} is negative`);
  if (Math.abs(sum - 1) >= 1e-9) broken.push(`the weights sum to ${shown(sum, 3)}, not to 1`);
  tell(root, `The blend is (${blend.map(a => shown(a)).join(", ")})${Math.max(Math.abs(x - middle), Math.abs(y - middle)) > middle ? ", outside the picture" : ""}. `
    + (fair ? "No weight is negative and they sum to 1: a mixture, inside the triangle." : `No mixture: ${broken.join(", ")}.`));
};
const set = next => {
  weights = next;
  fields.forEach((field, j) => { field.value = Number(weights[j].toFixed(4)); field.ariaInvalid = "false"; });
  show();
};
fields.forEach(field => field.oninput = () => {
  const numbers = fields.map(one => typed(one.value, -2, 2)), wrong = numbers.findIndex(Number.isNaN);
  fields.forEach((one, j) => one.ariaInvalid = String(Number.isNaN(numbers[j])));
  if (wrong >= 0) return tell(root, `Weight ${wrong}: a number from −2 to 2, please.`);
  weights = numbers;
  show();
});
/** Moves the blend by weights that sum to 1, in thousandths; not where one would be beyond 2. */
const drag = event => {
  const {left, top, width} = picture.getBoundingClientRect(), scale = 2 * middle / width / unit;
  const place = [centre[0] - middle / unit + (event.clientX - left) * scale, centre[1] + middle / unit - (event.clientY - top) * scale, 1];
  const [a, b] = inverse.map(row => Math.round(1000 * dot(row, place)) / 1000), next = [a, b, Math.round(1000 * (1 - a - b)) / 1000];
  if (next.every(w => Math.abs(w) <= 2)) set(next);
};
/** A finger on the blend, 30 pixels around it. */
const onBlend = ({clientX, clientY}) => {
  const {left, top, width} = grip.getBoundingClientRect();
  return Math.hypot(clientX - left - width / 2, clientY - top - width / 2) < 30;
};
dragged(picture, drag, onBlend);
part("share").onclick = () => {
  const sum = weights.reduce((a, b) => a + b), next = weights.map(w => w / sum);
  next.every(w => Math.abs(w) <= 2) ? set(next) : tell(root, "Divided by a sum so close to 0 they would be huge.");
};
part("reset").onclick = () => set(data.weights);
set(data.weights);
