const part = partsOf(root), {middle, radius, hill, near} = data;
/** One step of attention on unit vectors, and the cluster of each point: all within `near` of its first. */
root.compute = ({points, kappa}) => {
  const weights = times(points, transposed(points)).map(row => softmax(row.map(s => s * kappa)));
  const output = times(weights, points);
  const moved = output.map((u, i) => { const long = Math.hypot(...u); return long ? u.map(x => x / long) : points[i]; });
  const cluster = points.map(() => -1);
  let count = 0;
  points.forEach((p, i) => {
    if (cluster[i] >= 0) return;
    points.forEach((q, j) => { if (j === i || cluster[j] < 0 && Math.hypot(p[0] - q[0], p[1] - q[1]) < near) cluster[j] = count; });
    count++;
  });
  return {weights, output, moved, cluster, count};
};
let points = data.points, steps = 0;
const at = ([x, y]) => [middle + radius * x, middle - radius * y];
const kappa = () => Number(part("kappa").value);
const ring = Array.from({length: 121}, (_, i) => [Math.cos(i * Math.PI / 60), Math.sin(i * Math.PI / 60)]);
const show = (from, to, share) => {
  const now = to.map((p, i) => {
    const q = p.map((x, a) => from[i][a] * (1 - share) + x * share), long = Math.hypot(...q) || 1;
    return share === 1 ? p : q.map(x => x / long);
  });
  const {output, cluster} = root.compute({points: now, kappa: kappa()});
  const heights = ring.map(y => now.reduce((sum, p) => sum + Math.exp(kappa() * (dot(y, p) - 1)), 0)), top = Math.max(...heights);
  const line = ring.map((y, i) => at(y.map(x => x * (1 + heights[i] / top * hill / radius))));
  part("hills").setAttribute("d", `M${line.join("L")}Z`);
  part("scene").replaceChildren(
    ...now.map((p, i) => arrow(...at(p), ...at(output[i]), "value", 1)),
    ...now.map((p, i) => {
      const [cx, cy] = at(p), many = cluster.filter(c => c === cluster[i]).length;
      return draw("circle", {cx, cy, r: 4 + 8 * (many - 1) / now.length, class: "am-point"});
    }));
};
const say = () => {
  const {count} = root.now = root.compute({points, kappa: kappa()}), many = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
  part("kappa-now").textContent = kappa();
  tell(root, `${many(steps, "step")}, κ = ${kappa()}: ${many(points.length, "point")} in ${many(count, "cluster")}.`);
};
const go = (next, taken) => { const from = points; points = next; steps = taken; say(); glide(root, share => show(from, next, share)); };
const after = many => { let next = points; for (let i = 0; i < many; i++) next = root.compute({points: next, kappa: kappa()}).moved; go(next, steps + many); };
part("step").onclick = () => after(1);
part("more").onclick = () => after(10);
part("reset").onclick = () => go(data.points, 0);
part("kappa").oninput = () => go(points, steps);
say();
show(points, points, 1);
