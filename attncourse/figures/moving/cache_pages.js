const part = partsOf(root), {questions, steps, cell: [width, height, left, top], curves: [x0, y0, wide, tall, most]} = data;
const {rows, longest, page, common} = data.room, across = longest / page, WAYS = ["reserved", "pages", "shared"];
/** What the cache holds after each step, and who waits: [question, its pages, tokens] in the order in which they came in. */
root.compute = (questions, way, {rows, longest, page, common}, steps) => {
  const across = longest / page, shared = way === "shared" ? Math.floor(common / page) : 0;
  let free = Array.from({length: rows * across - shared}, (_, i) => shared + i), running = [], queue = [];
  const first = () => Array.from({length: shared}, (_, i) => i);
  const leave = one => { running = running.filter(other => other !== one); free = [...free, ...one.pages.slice(shared)].sort((a, b) => a - b); };
  const grow = (one, tokens) => {
    const more = Math.max((way === "reserved" ? across : Math.ceil(tokens / page)) - one.pages.length, 0);
    if (more > free.length) return false;
    one.pages.push(...free.splice(0, more));
    return true;
  };
  return Array.from({length: steps}, (_, step) => {
    questions.forEach(([comes, asks, answers], number) => { if (comes === step) queue.push({number, tokens: asks, end: asks + answers}); });
    running.filter(one => one.tokens === one.end).forEach(leave);
    for (const one of [...running]) {
      while (running.includes(one) && !grow(one, one.tokens + 1)) {
        const last = running.at(-1);
        leave(last);
        queue.unshift(last);
      }
      one.tokens += running.includes(one);
    }
    while (queue.length) {
      queue[0].pages = first();
      if (!grow(queue[0], queue[0].tokens + 1)) break;
      running.push(queue.shift());
    }
    return {held: running.map(({number, pages, tokens}) => [number, [...pages], tokens]), waiting: queue.map(({number}) => number)};
  });
};
const days = Object.fromEntries(WAYS.map(way => [way, root.compute(questions, way, data.room, steps)]));
let way = data.way, chosen = -1;
const show = () => {
  const step = +part("step").value, {held, waiting} = days[way][step], on = new Map();
  if (!held.some(([number]) => number === chosen)) chosen = held.length ? held.at(-1)[0] : -1;
  const mine = held.find(([number]) => number === chosen), own = new Set(mine?.[1]);
  for (const [, pages, tokens] of held) pages.forEach((at, k) => on.set(at, Math.min(page, Math.max(tokens - k * page, 0))));
  const shared = way === "shared" ? Math.floor(common / page) : 0;
  part("field").innerHTML = Array.from({length: rows * across}, (_, at) => {
    const x = left + at % across * width, y = top + Math.floor(at / across) * (height + 2), high = height * (on.get(at) ?? 0) / page;
    const kind = !on.has(at) ? "cp-free" : own.has(at) ? "cp-mine" : "cp-held", role = at < shared ? "value" : own.has(at) ? "key" : "query";
    return `<rect class="${kind}" x="${x}" y="${y}" width="${width - 1}" height="${height}"/>`
      + (high ? `<rect class="cp-full" x="${x}" y="${y + height - high}" width="${width - 1}" height="${high}" style="fill:var(--${role})"/>` : "");
  }).join("");
  const at = ([i, n]) => `${(x0 + wide * i / (steps - 1)).toFixed(1)},${(y0 + tall * (1 - n / most)).toFixed(1)}`;
  const [cx, cy] = at([step, waiting.length]).split(",");
  part("curves").innerHTML = WAYS.map(name => `<path class="${name === way ? "cp-now" : "cp-other"}" d="M${days[name].map((day, i) => at([i, day.waiting.length])).join("L")}"/>`).join("")
    + `<circle class="cp-mark" cx="${cx}" cy="${cy}" r="4"/>`;
  const tokens = [...on.values()].reduce((a, b) => a + b, 0), filled = tokens / (rows * longest), who = part("who");
  who.max = Math.max(held.length, 1);
  who.value = mine ? held.indexOf(mine) + 1 : 1;
  who.disabled = !mine;
  part("who-now").value = mine ? mine[0] + 1 : "–";
  who.setAttribute("aria-valuetext", mine ? `question ${mine[0] + 1}` : "none");
  part("step-now").value = step;
  root.now = {way, step, held, waiting, tokens, chosen};
  const used = mine && Math.ceil(mine[2] / page);
  tell(root, `Being answered: ${held.length}, waiting: ${waiting.length}. Tokens fill ${shown(100 * filled, 0)} % of the room.`
    + (mine ? ` Question ${mine[0] + 1}: ${mine[2]} tokens in ${way === "reserved" ? `${used} of its ${mine[1].length} pages` : `${used} page${used === 1 ? "" : "s"}`}.` : ""));
};
pick(root, "way", i => { way = WAYS[i]; show(); });
part("step").oninput = show;
part("who").oninput = event => { chosen = days[way][+part("step").value].held[event.target.value - 1][0]; show(); };
part("field").onclick = event => {
  const i = [...part("field").querySelectorAll(":not(.cp-full)")], cells = i.map(cell => cell.getBoundingClientRect());
  const at = cells.findIndex(r => event.clientX >= r.left - 1 && event.clientX <= r.right && event.clientY >= r.top - 1 && event.clientY <= r.bottom + 1);
  const one = days[way][+part("step").value].held.find(([, pages]) => pages.includes(at));
  if (one) { chosen = one[0]; show(); }
};
show();
