// A few lines over the same places, as a picture.
/** lines: [{values, role, thick, dash}], as many values each as there are ticks, from 0 up; ticks: what stands below, "" for none. */
const lineChart = (lines, ticks, label, alt) => {
  const wide = 340, high = 150, left = 44, right = 8, top = 8, bottom = 128, most = Math.max(...lines.flatMap(line => line.values), 1e-9);
  const x = i => left + (wide - left - right) * (ticks.length > 1 ? i / (ticks.length - 1) : 0), y = p => bottom - (bottom - top) * p / most;
  const words = (at, down, anchor, text) => draw("text", {x: at, y: down, "text-anchor": anchor, "font-size": 14}, text);
  return draw("svg", {viewBox: `0 0 ${wide} ${high + 18}`, role: "img", "aria-label": alt, class: "lc-chart"},
    draw("path", {d: `M${left},${top}V${bottom}H${wide - right}`, style: "stroke:var(--quiet);fill:none"}), words(left - 5, top + 10, "end", percent(most)), words(left - 5, bottom, "end", "0"),
    ...ticks.map((text, i) => words(x(i), bottom + 16, "middle", text)), words((left + wide) / 2, high + 13, "middle", label),
    ...lines.map(({values, role, thick = 1, dash = ""}) => draw("path", {d: `M${values.map((p, i) => [x(i), y(p)]).join("L")}`, style: `fill:none;stroke:var(--${role});stroke-width:${thick}`, "stroke-dasharray": dash})));
};
