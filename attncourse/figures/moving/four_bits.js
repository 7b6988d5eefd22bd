const part = partsOf(root), {weights, size: [width, height, edge]} = data, low = Math.min(...weights), high = Math.max(...weights);
const even = x => Math.abs(x % 1) === .5 ? 2 * Math.round(x / 2) : Math.round(x), length = row => Math.hypot(...row);
/** Codes of so many bits, the numbers that they stand for, and how far these are off, over the weights' size. */
root.compute = ({weights, bits}) => {
  const low = Math.min(...weights), step = (Math.max(...weights) - low) / (2 ** bits - 1);
  const codes = weights.map(w => even((w - low) / step)), back = codes.map(code => low + code * step);
  return {codes, back, off: length(back.map((v, i) => v - weights[i])) / length(weights)};
};
const x = i => edge + i * (width - 2 * edge) / (weights.length - 1), y = w => height - edge - (w - low) * (height - 2 * edge) / (high - low);
const show = () => {
  const bits = +part("bits").value, {back, off} = root.now = root.compute({weights, bits}), levels = 2 ** bits;
  part("bits-now").value = bits;
  part("levels").innerHTML = levels > 64 ? "" : Array.from({length: levels}, (_, k) => y(low + k * (high - low) / (levels - 1)))
    .map(at => `<path d="M${edge - 6},${at}H${width - edge + 6}" style="stroke:var(--rim)"/>`).join("");
  part("dots").innerHTML = weights.map((w, i) => `<path d="M${x(i)},${y(w)}V${y(back[i])}" style="stroke:var(--quiet)"/>`
    + `<circle cx="${x(i)}" cy="${y(back[i])}" r="3" style="fill:var(--query)"/>`
    + `<circle cx="${x(i)}" cy="${y(w)}" r="3.5" style="fill:none;stroke:var(--ink)"/>`).join("");
  tell(root, `${bits} bits, ${levels} levels: off by ${shown(100 * off, 1)} % of the weights' size.`);
};
part("bits").oninput = show;
show();
