const part = partsOf(root), {heads, stories, asked, above, below, least} = data;
const names = heads.flatMap((count, layer) => Array.from({length: count}, (_, h) => [layer, h]));
const cards = [...root.querySelectorAll('.am-stage [data-part="head"]')];
/** The probabilities of she, he and all other words after a story. */
root.next = (ids, on) => {
  const {logits, maps} = root.compute({ids, on}), all = softmax(logits.at(-1)), pair = asked.map(id => all[id]);
  return {chances: [...pair, 1 - pair[0] - pair[1]], maps};
};
const lit = names.map(([layer, h]) => layer !== data.off[0] || h !== data.off[1]);
const states = some => heads.map((count, layer) => names.flatMap(([l], k) => l === layer ? [some[k]] : []));
let story = stories[0];
const arc = (layer, j, weight, isOn) => {
  const x = story.x.at(-1), to = story.x[j], y = layer ? below : above, turn = y + (layer ? 1 : -1) * (8 + .2 * (x - to));
  return draw("path", {class: isOn ? "sh-arc" : "sh-arc sh-off", style: `stroke-width:${.5 + 5 * weight}`, d: `M${x},${y}C${x},${turn} ${to},${turn} ${to},${y}`});
};
const show = () => {
  const {chances, maps} = root.next(story.ids, states(lit)), before = root.next(story.ids, states(lit.map(() => true))).chances;
  root.now = {ids: story.ids, on: states(lit), chances, before, maps};
  const last = maps.flat().map(A => A.at(-1));
  part("words").replaceChildren(...story.tokens.map((token, j) => draw("text", {x: story.x[j], y: 78, "text-anchor": "middle", ...j === story.who && {class: "sh-who"}}, token)));
  part("arcs").replaceChildren(...names.map(([layer], k) => draw("g", {}, ...last[k].slice(0, -1).flatMap((w, j) => w < least ? [] : arc(layer, j, w, lit[k])))));
  cards.forEach((card, k) => { card.ariaPressed = lit[k]; });
  part("next").querySelectorAll("tbody tr").forEach((line, i) => {
    [chances[i], before[i]].forEach((p, k) => {
      line.querySelectorAll("i")[k].style.width = `${100 * p}%`;
      line.cells[2 + k].textContent = percent(p);
    });
  });
  const off = names.flatMap(([layer, h], k) => lit[k] ? [] : [[`${layer}.${h}`, last[k][story.who]]]), best = before[0] > before[1] ? 0 : 1;
  const word = `“${["she", "he"][best]}”: ${percent(before[best])} with all heads`, character = story.tokens[story.who];
  tell(root, !off.length ? `All heads are on. ${word}.`
    : off.length === 1 ? `Head ${off[0][0]} is off. From the full stop it gives “${character}” ${shown(off[0][1])} of its attention. ${word}, ${percent(chances[best])} now.`
    : `Off: ${off.map(([name]) => name).join(", ")}. ${word}, ${percent(chances[best])} now.`);
};
cards.forEach((card, k) => {
  card.onclick = () => { lit[k] = !lit[k]; show(); };
  const mark = one => [...part("arcs").children].forEach((group, i) => group.classList.toggle("sh-faint", one && i !== k));
  card.onpointerenter = card.onfocus = () => mark(true);
  card.onpointerleave = card.onblur = () => mark(false);
});
part("all").onclick = () => { lit.fill(true); show(); };
pick(root, "who", i => { story = stories[i]; show(); });
show();
