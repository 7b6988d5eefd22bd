const part = partsOf(root), {maps, values, W_o, tokens, names} = data;
/** The heads' outputs side by side, 0 where a head is off, times W_o; and by which share of its length each row changes. */
root.compute = ({maps, values, W_o, on}) => {
  const heads = maps.map((A, h) => times(A, values[h]));
  const joined = states => heads[0].map((_, i) => heads.flatMap((head, h) => head[i].map(x => states[h] ? x : 0)));
  const concat = joined(on), output = times(concat, W_o), whole = times(joined(on.map(() => true)), W_o);
  const change = output.map((row, i) => Math.hypot(...row.map((x, a) => x - whole[i][a])) / (Math.hypot(...whole[i]) || 1));
  return {concat, output, whole, change};
};
const strongest = rows => Math.max(...rows.flat().map(Math.abs)) || 1;
const write = (name, rows, most, more = []) => [...part(name).querySelectorAll("tbody tr")].forEach((line, i) => {
  [...line.querySelectorAll("td")].forEach((cell, a) => a < rows[i].length ? fill(cell, "value", Math.min(1, rows[i][a] / most), rows[i][a], 1)
    : cell.textContent = `${shown(100 * more[i], 0)} %`);
});
let on = data.on;
const first = root.compute({maps, values, W_o, on: names.map(() => true)}), most = [strongest(first.concat), strongest(first.whole)];
const show = () => {
  const {concat, output, change} = root.now = root.compute({maps, values, W_o, on}), off = names.filter((_, h) => !on[h]);
  names.forEach((name, h) => {
    part(`head-${h}`).classList.toggle("am-off", !on[h]);
    const button = part(`switch-${h}`), state = button.textContent = on[h] ? "on" : "off";
    button.ariaPressed = String(on[h]);
    button.ariaLabel = `${name} is ${state}`;
  });
  write("concat", concat, most[0]);
  part("concat").querySelectorAll("th[scope=colgroup]").forEach((head, h) => head.classList.toggle("am-off", !on[h]));
  write("output", output, most[1], change);
  const largest = change.indexOf(Math.max(...change));
  tell(root, off.length === 0 ? `All ${names.length} heads are on.`
    : off.length === names.length ? "All heads are off: nothing reaches W_o, and the output is 0."
    : `Off: ${off.map(name => `“${name}”`).join(", ")}. The output of “${tokens[largest]}” changes most, by ${shown(100 * change[largest], 0)} % of its length.`);
};
names.forEach((_, h) => part(`switch-${h}`).onclick = () => { on = on.map((x, i) => i === h ? !x : x); show(); });
part("all").onclick = () => { on = on.map(() => true); show(); };
show();
