// Too many tokens for numbers: a picture with a square for each weight, and the table beside it.
const side = Math.ceil(600 / Math.max(m, n));  // of a square, in the picture's own pixels
const label = root.ariaLabel + ": picture, rows are queries, columns are keys, arrow keys move";
const canvas = make("canvas", {width: side * n, height: side * m, tabIndex: 0, role: "application", ariaLabel: label});
const spot = make("div", {className: "av-mark", hidden: true});
const where = event => [[event.offsetY, canvas.clientHeight, m], [event.offsetX, canvas.clientWidth, n]]
  .map(([offset, length, size]) => Math.min(size - 1, Math.max(0, Math.floor(offset / length * size))));
const move = next => { at = next; show(at); };
canvas.onkeydown = go(0);
canvas.onfocus = () => show(at);
canvas.onmousemove = event => show(where(event));
canvas.onclick = event => move(where(event));
canvas.onmouseleave = leave;
(folded || box).before(make("div", {className: "av-map"}, canvas, spot));

return {
  what: "picture",
  keyed: canvas,
  move,
  mark(position) {
    root.querySelector(".av-on")?.classList.remove("av-on");
    spot.hidden = !position;
    if (!position) return;
    const [i, j] = position, row = table.rows[i + 1];
    const [left, width] = j < 0 ? [0, 100] : [100 * j / n, 100 / n];  // a query alone is a whole row
    Object.assign(spot.style, {left: left + "%", top: 100 * i / m + "%", width: width + "%", height: 100 / m + "%"});
    row.cells[0].classList.add("av-on");
    // Scrolls the box and never the page.
    const above = row.offsetTop - box.scrollTop;
    if (above < 0 || above + row.offsetHeight > box.clientHeight) box.scrollTop += above - box.clientHeight / 2;
  },
  paint() {
    // Ink that is more opaque for a larger weight; CSS makes it light where the page is dark.
    const context = canvas.getContext("2d"), image = context.createImageData(side * n, side * m);
    for (const i of range(m)) {
      for (const j of range(n)) {
        const shade = Math.round(255 * steps(i, j) / unit / data.most), hatched = masked(i, j);
        for (let y = side * i; y < side * (i + 1); y++) for (let x = side * j; x < side * (j + 1); x++) {
          image.data.set([31, 35, 40, hatched ? 100 * ((x + y) % 6 < 1) : shade], 4 * (y * side * n + x));
        }
      }
      table.rows[i + 1].cells[1].replaceChildren(...top(i, "", "no key", ""));
    }
    context.putImageData(image, 0, 0);
  },
};
