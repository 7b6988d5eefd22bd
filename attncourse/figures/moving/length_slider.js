const part = partsOf(root), {side, high, d_head, window: around, tile, cache, least, most} = data;
/** Bytes of each thing that is held at n tokens, and the operations of one head. */
root.compute = ({n}) => ({
  map: 4 * n * n, window: 4 * n * around, cache: 2 * 2 * n * cache.n_layers * cache.n_kv_heads * cache.d_head,
  tile: 4 * tile * tile, operations: 4 * n * n * d_head,
});
const size = amount => {
  for (const [unit, name] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]])
    if (amount >= unit) return `${(amount / unit).toFixed(amount / unit >= 9.95 ? 0 : 1)} ${name}`;
  return `${amount} bytes`;
};
const grouped = x => String(x).replace(/\B(?=(\d{3})+$)/g, ",");
const show = () => {
  const n = 2 ** part("length").value, {operations, ...held} = root.compute({n});
  root.now = {n, ...held, operations};
  part("length-now").textContent = grouped(n);
  part("length").setAttribute("aria-valuetext", `${grouped(n)} tokens`);
  for (const edge of ["width", "height"]) part("square").setAttribute(edge, Math.max(side * n / 2 ** high, 1));
  for (const [name, amount] of Object.entries(held)) {
    const cell = part(name);
    cell.textContent = size(amount);
    cell.parentNode.nextSibling.querySelector("i").style.width = `${100 * Math.log10(Math.max(amount, least) / least) / Math.log10(most / least)}%`;
  }
  const [digits, power] = operations.toExponential(1).split("e+");
  tell(root, `${grouped(n)} tokens: ${grouped(n * n)} scores, ${size(held.map)} for one head of one layer, and ${digits} · 10${[...power].map(digit => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")} operations.`);
};
part("length").oninput = show;
/** The square is held by its corner, or anywhere: beside it there is room to scroll. */
const picture = part("square").ownerSVGElement;
dragged(picture, event => {
  const {x, y} = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
  part("length").value = Math.round(Math.log2(Math.max(x - 2, y - 2, 1) / side * 2 ** high));
  show();
}, () => true);
show();
