const part = partsOf(root), {keys, values, ends, places, seen, box: [left, right, top, bottom]} = data;
/** The weights of the keys for what is asked, and the blend of the values. */
root.compute = ({query, keys, values, temperature}) => {
  const weights = softmax(keys.map(k => -((query - k) ** 2) / 2 / temperature));
  return {weights, answer: dot(weights, values)};
};
const at = (x, y) => [left + (right - left) * x / ends[0], bottom - (bottom - top) * y / ends[1]];
const picture = part("moves").ownerSVGElement, [asked, threads, curve, ...dots] = part("moves").children, ring = dots.pop();
const show = () => {
  const query = Number(part("query").value), temperature = 10 ** Number(part("heat").value);
  const {weights, answer} = root.now = root.compute({query, keys, values, temperature});
  const [x, y] = at(query, answer);
  asked.setAttribute("d", `M${x},${top}V${bottom}`);
  curve.setAttribute("d", `M${Array.from({length: places}, (_, i) => {
    const place = ends[0] * i / (places - 1);
    return at(place, root.compute({query: place, keys, values, temperature}).answer);
  }).join("L")}`);
  threads.setAttribute("d", keys.map((k, j) => weights[j] > seen ? `M${at(k, values[j])}L${x},${y}` : "").join(""));
  dots.forEach((dot, j) => dot.setAttribute("r", 4 + 7 * weights[j]));
  ring.setAttribute("cx", x);
  ring.setAttribute("cy", y);
  part("query-now").textContent = shown(query, 1);
  part("heat-now").textContent = String(+temperature.toPrecision(2));
  tell(root, `The price is ${shown(answer, 1)} thousand. Weights: ${keys.flatMap((k, j) => weights[j] >= .005 ? [`${shown(weights[j])} for ${short(k)} years`] : []).join(", ")}.`);
};
part("query").oninput = part("heat").oninput = show;
const ask = event => {
  const box = picture.getBoundingClientRect(), pixel = (event.clientX - box.left) * 330 / box.width;
  part("query").value = (pixel - left) / (right - left) * ends[0];
  show();
};
dragged(picture, ask);
show();
