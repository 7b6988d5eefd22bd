// Too many tokens for numbers: a picture with a pixel for each weight, and the table beside it.
const label = root.ariaLabel + ": picture, rows are queries, columns are keys, arrow keys move";
const canvas = make("canvas", {width: n, height: m, tabIndex: 0, role: "application", ariaLabel: label});
const spot = make("div", {className: "av-mark", hidden: true});
const where = event => [[event.offsetY, canvas.clientHeight, m], [event.offsetX, canvas.clientWidth, n]]
  .map(([offset, length, size]) => Math.min(size - 1, Math.max(0, Math.floor(offset / length * size))));
const move = next => { at = next; show(at); };
canvas.onkeydown = go(0);
canvas.onfocus = () => show(at);
canvas.onmousemove = event => show(where(event));
canvas.onclick = event => move(where(event));
canvas.onmouseleave = leave;
box.before(make("div", {className: "av-map"}, canvas, spot));

return {
  what: "picture",
  keyed: canvas,
  move,
  mark(position) {
    root.querySelector(".av-on")?.classList.remove("av-on");
    spot.hidden = !position;
    if (!position) return;
    const [i, j] = position, row = table.rows[i + 1];
    Object.assign(spot.style, {left: 100 * j / n + "%", top: 100 * i / m + "%", width: 100 / n + "%", height: 100 / m + "%"});
    row.cells[0].classList.add("av-on");
    // Scrolls the box and never the page.
    const above = row.offsetTop - box.scrollTop;
    if (above < 0 || above + row.offsetHeight > box.clientHeight) box.scrollTop += above - box.clientHeight / 2;
  },
  paint() {
    const context = canvas.getContext("2d"), image = context.createImageData(n, m);
    for (const i of range(m)) {
      for (const j of range(n)) image.data.set([...colour(steps(i, j) / unit / data.most), 255], 4 * (i * n + j));
      table.rows[i + 1].cells[1].replaceChildren(...top(i, "", "no key"));
    }
    context.putImageData(image, 0, 0);
  },
};
