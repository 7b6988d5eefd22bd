const part = partsOf(root), {q, k, base, hands, last, names, size, unit, high, middle} = data;
const turned = ([x, y], angle) => [x * Math.cos(angle) - y * Math.sin(angle), x * Math.sin(angle) + y * Math.cos(angle)];
/** Row s of the encoding with d features; q and k turned by s and t with frequency `pair`, and their score. */
root.compute = ({q, k, s, t, pair, d, base}) => {
  const pace = Array.from({length: d / 2}, (_, i) => base ** (-2 * i / d));
  const query = turned(q, s * pace[pair]), key = turned(k, t * pace[pair]);
  return {pace, encoding: pace.flatMap(w => [Math.sin(s * w), Math.cos(s * w)]), query, key, score: dot(query, key)};
};
const longer = size / Math.max(Math.hypot(...q), Math.hypot(...k)), tall = high / Math.hypot(...q) / Math.hypot(...k);
const at = name => Number(part(name).value);
let pair = data.chosen;
const turnedArrow = (name, role, vector) => {
  const [x, y] = vector.map(a => a * longer), far = 1 + 13 / Math.hypot(x, y);
  part(name).innerHTML = arrow(170, 124, 170 + x, 124 - y, role, 3)
    + `<text x="${170 + x * far}" y="${129 - y * far}" text-anchor="middle" style="fill:var(--${role})">${name}</text>`;
};
const show = () => {
  const s = at("s"), t = at("t"), now = root.now = root.compute({q, k, s, t, pair, d: 2 * hands, base});
  part("s-now").textContent = s;
  part("t-now").textContent = t;
  if (!data.brief) now.pace.forEach((_, i) => {
    const [sin, cos] = now.encoding.slice(2 * i);
    part(`hand-${i}`).setAttribute("d", `M${44 + 84 * i},56l${28 * sin},${-28 * cos}`);
    part(`clock-${i}`).classList.toggle("am-turns", i === pair);
    part(`sin-${i}`).firstChild.textContent = `sin ${shown(sin)}`;
    part(`cos-${i}`).firstChild.textContent = `cos ${shown(cos)}`;
  });
  turnedArrow("q", "query", now.query);
  turnedArrow("k", "key", now.key);
  const scoreAt = distance => dot(turned(q, distance * now.pace[pair]), k);
  const [[a, b], [c, e]] = [now.key, now.query].map(v => v.map(x => 30 * x / Math.hypot(...v)));
  part("arc").firstChild.setAttribute("d", `M${170 + a},${124 - b}A30,30 0 ${a * e - b * c < 0 ? 1 : 0} 0 ${170 + c},${124 - e}`);
  if (!data.brief) {
    const line = Array.from({length: 4 * last + 1}, (_, i) => i / 2 - last).map(x => [170 + unit * x, middle - tall * scoreAt(x)]);
    part("curve").setAttribute("d", `M${line.join("L")}`);
    part("dot").setAttribute("cx", 170 + unit * (s - t));
    part("dot").setAttribute("cy", middle - tall * now.score);
  }
  const angle = Math.atan2(now.query[1], now.query[0]) - Math.atan2(now.key[1], now.key[0]);
  const degrees = ((angle * 180 / Math.PI % 360) + 360) % 360;
  tell(root, `Query at ${s}, key at ${t}, ω = ${names[pair]}: distance s − t = ${shown(s - t, 0)}, `
    + `angle from k to q ${shown(degrees, 0)}°, score ${shown(now.score, 3)}.`);
  part("back").disabled = !s || !t;
  part("on").disabled = Math.max(s, t) === last;
};
const both = by => () => { for (const name of ["s", "t"]) part(name).value = at(name) + by; show(); };
part("back").onclick = both(-1);
part("on").onclick = both(1);
part("s").oninput = part("t").oninput = show;
/** An arrow that is held turns to the pointer, to the nearest position that points there; a finger holds it when it is on it. */
const dial = part("q").ownerSVGElement, disc = dial.querySelector(".pd-disc");
let held = "s";
const pointed = event => { const {x, y} = new DOMPoint(event.clientX, event.clientY).matrixTransform(dial.getScreenCTM().inverse()); return Math.atan2(124 - y, x - 170); };
const apart = angle => Math.abs(Math.atan2(Math.sin(angle), Math.cos(angle)));
const angleOf = (name, place) => { const [x, y] = name === "s" ? q : k; return Math.atan2(y, x) + place * base ** (-pair / hands); };
const offArrows = event => ["s", "t"].map(name => apart(pointed(event) - angleOf(name, at(name))));
disc.addEventListener("pointerdown", event => {
  const [query, key] = offArrows(event);
  held = query <= key ? "s" : "t";
});
dragged(disc, event => {
  const angle = pointed(event), off = place => apart(angle - angleOf(held, place)) + .001 * Math.abs(place - at(held));
  part(held).value = Array.from({length: last + 1}, (_, place) => place).reduce((best, place) => off(place) < off(best) ? place : best);
  show();
}, event => Math.min(...offArrows(event)) < .6);
pick(root, "pace", i => { pair = i; show(); });
show();
