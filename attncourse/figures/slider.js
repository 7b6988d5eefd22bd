// Moves every slider above this script that does not move yet. The pictures of the first frame
// are there already; what changes is redrawn from the numbers beside them.
(() => {
  // As squares() in shades.py: for each shade a path through its squares.
  const squares = (text) => {
    const paths = {};
    text.split(" ").forEach((row, i) => {
      for (const run of row.matchAll(/([^0])\1*/g)) {
        paths[run[1]] = (paths[run[1]] || "") + `M${run.index} ${i}.5h${run[0].length}`;
      }
    });
    const path = (sign) => `<path stroke-opacity="${parseInt(sign, 36) / 32}" d="${paths[sign]}"/>`;
    return Object.keys(paths).sort().map(path).join("");
  };
  const draw = {
    curves(panel, frame, svg) {
      const [bottom, step] = panel.y;
      svg.querySelectorAll("path.as-line").forEach((line, i) => {
        const at = (x, k) => x + "," + (bottom - panel.lines[i][frame][k] * step).toFixed(1);
        line.setAttribute("d", "M" + panel.x.map(at).join("L"));
      });
      svg.querySelectorAll(".as-name").forEach((name, i) => {
        const place = panel.names[i][frame];
        name.setAttribute("visibility", place ? "visible" : "hidden");
        if (place) ["x", "y"].forEach((axis, k) => name.setAttribute(axis, place[k]));
      });
      const dot = svg.querySelector(".as-dot");
      if (dot) ["cx", "cy"].forEach((name, i) => dot.setAttribute(name, panel.dots[frame][i]));
    },
    bars(panel, frame, svg) {
      const amounts = svg.querySelectorAll(".as-amount");
      svg.querySelectorAll(".as-bar").forEach((bar, j) => {
        const amount = panel.bars[frame][j];
        bar.setAttribute("width", (amount * panel.unit).toFixed(1));
        amounts[j].textContent = amount.toFixed(3);
      });
    },
    matrix(panel, frame, svg, box) {
      const picture = svg.querySelector(".as-picture");
      if (panel.pixels) picture.setAttribute("href", "data:image/png;base64," + panel.pixels[frame]);
      else picture.innerHTML = squares(panel.squares[frame]);
      box.querySelector(".as-top").textContent = panel.tops[frame];
    },
  };
  for (const slider of document.querySelectorAll(".attncourse-slider:not([data-moves])")) {
    const find = (selector) => slider.querySelector(selector);
    const data = JSON.parse(find("script[type='application/json']").textContent);
    const input = find("input"), boxes = slider.querySelectorAll(".as-panel");
    const show = () => {
      const frame = Number(input.value), now = data.name + " = " + data.values[frame];
      find(".as-now").textContent = now + ".";
      find(".as-says").textContent = data.says[frame];
      input.setAttribute("aria-valuetext", now + ". " + data.says[frame]);
      data.panels.forEach((panel, i) => {
        draw[panel.kind](panel, frame, boxes[i].querySelector(".as-plot"), boxes[i]);
      });
    };
    input.addEventListener("input", show);
    find(".as-control").hidden = false;
    find(".as-note").hidden = true;
    slider.dataset.moves = "";
    show();
  }
})();
