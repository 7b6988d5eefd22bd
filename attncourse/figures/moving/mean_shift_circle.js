const part = partsOf(root), {middle, radius, hill, near} = data;
/** One step of attention on unit vectors, and the group of each point: all within `near` of its first. */
root.compute = ({points, kappa}) => {
  const weights = times(points, transposed(points)).map(row => softmax(row.map(s => s * kappa)));
  const output = times(weights, points);
  const moved = output.map((u, i) => { const long = Math.hypot(...u); return long ? u.map(x => x / long) : points[i]; });
  const group = points.map(() => -1);
  let count = 0;
  points.forEach((p, i) => {
    if (group[i] >= 0) return;
    points.forEach((q, j) => { if (j === i || group[j] < 0 && Math.hypot(p[0] - q[0], p[1] - q[1]) < near) group[j] = count; });
    count++;
  });
  return {weights, output, moved, group, count};
};
let points = data.points, steps = 0;
const at = ([x, y]) => [middle + radius * x, middle - radius * y];
const ring = Array.from({length: 121}, (_, i) => [Math.cos(i * Math.PI / 60), Math.sin(i * Math.PI / 60)]);
const show = () => {
  const kappa = Number(part("kappa").value), {output, group, count} = root.now = root.compute({points, kappa}), n = points.length;
  const heights = ring.map(y => points.reduce((sum, p) => sum + Math.exp(kappa * (dot(y, p) - 1)), 0)), top = Math.max(...heights);
  part("hills").setAttribute("d", `M${ring.map((y, i) => at(y.map(x => x * (1 + heights[i] / top * hill / radius)))).join("L")}Z`);
  part("arrows").innerHTML = points.map((p, i) => arrow(...at(p), ...at(output[i]), "value", 1)).join("");
  points.forEach((p, i) => {
    const [cx, cy] = at(p), r = 4 + 8 * (group.filter(c => c === group[i]).length - 1) / n;
    const now = {cx, cy, r, "aria-valuenow": Math.round(Math.atan2(p[1], p[0]) * 180 / Math.PI)};
    for (const [key, value] of Object.entries(now)) part("points").children[i].setAttribute(key, value);
  });
  const many = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
  part("kappa-now").textContent = kappa;
  tell(root, `${many(steps, "step")}, κ = ${kappa}: ${many(n, "point")} in ${many(count, "group")}.`);
};
const after = many => () => {
  for (let i = 0; i < many; i++) points = root.compute({points, kappa: Number(part("kappa").value)}).moved;
  steps += many;
  show();
};
/** A point is held and moves along the circle; by key, too: left and right turn it, up and down choose another. */
const circle = part("points").ownerSVGElement, spots = [...part("points").children];
let held = -1;
const pointed = event => new DOMPoint(event.clientX, event.clientY).matrixTransform(circle.getScreenCTM().inverse());
const put = (i, angle) => { points = points.map((p, j) => j === i ? [Math.cos(angle), Math.sin(angle)] : p); show(); };
/** The point that a finger or a mouse is on, or -1. */
const spotAt = event => {
  const {x, y} = pointed(event), far = points.map(at).map(([a, b]) => Math.hypot(a - x, b - y)), least = Math.min(...far);
  return least < 24 ? far.indexOf(least) : -1;
};
circle.addEventListener("pointerdown", event => { held = spotAt(event); });
circle.addEventListener("pointermove", event => circle.classList.toggle("ms-held", event.buttons > 0));
dragged(circle, event => { const {x, y} = pointed(event); if (held >= 0) put(held, Math.atan2(middle - y, x - middle)); }, event => spotAt(event) >= 0);
circle.setAttribute("role", "group");  // points that keys move are no part of a picture
spots.forEach((spot, i) => {
  for (const [name, value] of Object.entries({tabindex: i ? -1 : 0, role: "slider", "aria-label": `Point ${i}`, "aria-valuemin": -180, "aria-valuemax": 180})) spot.setAttribute(name, value);
  spot.onkeydown = event => {
    const turn = {ArrowRight: -5, ArrowLeft: 5}[event.key], other = {ArrowUp: 1, ArrowDown: -1}[event.key];
    if (!turn && !other) return;
    event.preventDefault();
    if (turn) return put(i, Math.atan2(points[i][1], points[i][0]) + turn * Math.PI / 180);
    spot.setAttribute("tabindex", -1);
    const next = spots[(i + other + spots.length) % spots.length];
    next.setAttribute("tabindex", 0);
    next.focus();
  };
});
part("step").onclick = after(1);
part("more").onclick = after(10);
part("reset").onclick = () => { points = data.points; steps = 0; show(); };
part("kappa").oninput = show;
root.points = () => points;
show();
