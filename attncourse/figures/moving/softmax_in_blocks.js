const part = partsOf(root), {values, block} = data, names = ["maximum", "factor", "normaliser", "output"];
/** After each block: the largest score, the factor for what was summed before, the normaliser, the output. */
root.compute = ({scores, values, block}) => {
  const steps = [];
  let maximum = -Infinity, normaliser = 0, total = 0;
  for (let start = 0; start < scores.length; start += block) {
    const s = scores.slice(start, start + block), larger = Math.max(maximum, ...s), factor = Math.exp(maximum - larger);
    const weights = s.map(x => Math.exp(x - larger));
    normaliser = normaliser * factor + weights.reduce((a, b) => a + b);
    total = total * factor + dot(weights, values.slice(start, start + block));
    maximum = larger;
    steps.push({maximum, factor, normaliser, output: total / normaliser});
  }
  return {steps};
};
const fields = values.map((_, j) => part(`score-${j}`)), lines = [...part("steps").tBodies[0].rows];
let scores = data.scores, at = 1;
const show = () => {
  const {steps} = root.now = {...root.compute({scores, values, block}), at}, {maximum, factor, normaliser, output} = steps[at - 1];
  lines.forEach((line, b) => {
    line.classList.toggle("am-off", b >= at);
    line.classList.toggle("am-now", b === at - 1);
    names.forEach((name, i) => line.cells[i + 2].textContent = b >= at ? "" : i === 1 && !b ? "–" : shown(steps[b][name], i ? 3 : 1));
  });
  part("back").disabled = at < 2;
  part("next").disabled = at === lines.length;
  tell(root, (at < 2 ? "The first block: nothing to rescale. " : factor < 1
    ? `The largest score rises to ${shown(maximum, 1)}: what was summed before is multiplied by ${shown(factor, 3)}. `
    : "The largest score stays, and so does what was summed before. ")
    + (at === lines.length ? `All blocks seen: the output is ${shown(output, 3)}, the softmax’s own.` : `The sum is now ${shown(normaliser, 3)}.`));
};
const go = to => { at = to; show(); };
fields.forEach(field => field.oninput = () => {
  const numbers = fields.map(one => typed(one.value, -50, 50)), wrong = numbers.findIndex(Number.isNaN);
  fields.forEach((one, j) => one.ariaInvalid = String(Number.isNaN(numbers[j])));
  if (wrong >= 0) return tell(root, `Score ${wrong}: a number from −50 to 50, please.`);
  scores = numbers;
  show();
});
part("back").onclick = () => go(at - 1);
part("next").onclick = () => go(at + 1);
part("reset").onclick = () => {
  scores = data.scores;
  fields.forEach((field, j) => { field.value = scores[j]; field.ariaInvalid = "false"; });
  go(1);
};
show();
