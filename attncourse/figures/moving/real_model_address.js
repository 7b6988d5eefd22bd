// The address of a state of the real model, and the way from an address back to that state.
/** Numbers that rise as ranges, "0-8.12", and back. */
const rangesOf = numbers => {
  const runs = [];
  for (const n of numbers) if (runs.length && runs.at(-1)[1] === n - 1) runs.at(-1)[1] = n; else runs.push([n, n]);
  return runs.map(([from, to]) => from === to ? from : `${from}-${to}`).join(".");
};
const numbersOf = (text, count) => text.split(".").flatMap(run => {
  const [from, to = from] = run.split("-").map(end => wholeBelow(count, end));
  return Array.from({length: to - from + 1}, (_, i) => from + i);
});
/** A number of a list with so many; what is none belongs to another edition of the page. */
const wholeBelow = (count, text) => /^\d+$/.test(text) && +text < count ? +text : foreign();
const foreign = () => { throw new Error("That setting is of another edition of this page, or of another model or text."); };

/** The steps that lead to what is shown now. What is changed stands behind the order where the heads were sorted before it. */
root.steps = () => {
  if (!about) return [];
  const value = name => part(name).value, unlike = (name, now, first) => String(now) === String(first) ? [] : [`${name}=${now}`];
  const heads = about.layers * about.heads, sortedBy = unlike("order", order, sortedChanged ? "" : "previous"), changed = [...undoneIn(way).map(([i, k]) => `switch${i}=${k}`),
    ...+value("first") && !sortedChanged ? [`first=${value("first")}`] : unlike("off", rangesOf(way.off), ""),
    ...unlike("cuts", edges().map(([i, j, some]) => `${i}-${j}${some.length === heads ? "" : `_${rangesOf(some.sort((a, b) => a - b))}`}`).join("~"), "")];
  return [...unlike("kind", downOf("kind"), 0), ...unlike("text", text.value, text.defaultValue), ...unlike("written", written.join("."), ""), ...SAMPLING.flatMap(name => unlike(name, value(name), part(name).defaultValue)),
    ...unlike("word", query, pieces.length - 1), ...unlike("key", keyAt, 0), ...sortedChanged ? [...changed, ...sortedBy] : [...sortedBy, ...changed], ...place ? [`chosen=${current()[0]}`] : [],
    ...isDown("why") ? ["why=true"] : [], ...isDown("turned") ? [] : ["turned=false"], ...part("two").open ? ["other", "from", "to"].map(name => `${name}=${value(name)}`) : []];
};
/** What each step of an address sets; `put` sorts the heads before something is changed. Presses of older addresses, and places in an order, are among them. */
const SETS = {
  order(value) { if (![...Object.keys(data.orders), "word"].includes(value)) foreign(); order = value; return true; },
  word(value) { query = wholeBelow(pieces.length, value); return order === "word"; },
  key(value) { keyAt = wholeBelow(pieces.length, value); return order === "word"; },
  rank(value) { place = wholeBelow(ranked.length, String(value - 1)); },
  chosen(value) { const head = wholeBelow(ranked.length, value); place = ranked.findIndex(([other]) => other === head); },
  first(value) { way = {...way, off: firstOf(wholeBelow(ranked.length + 1, value))}; },
  off(value) { way = {...way, off: numbersOf(value, ranked.length)}; },
  cuts(value) {
    for (const edge of value.split("~")) {
      const [ends, some] = edge.split("_"), [i, j] = ends.split("-").map(end => wholeBelow(pieces.length, end));
      way = {...way, cuts: withCuts(some === undefined ? allHeads() : numbersOf(some, ranked.length), i, j ?? foreign())};
    }
  },
  "head!"() { way = {...way, off: toggled([current()[0]])}; },
  "cut!"() { way = {...way, cuts: withCuts([current()[0]])}; },
  "cutall!"() { way = {...way, cuts: withCuts(allHeads())}; },
  why(value) { part("why").ariaPressed = value === "true"; },
  turned(value) { part("turned").ariaPressed = value !== "false"; },
};
const ASIDE = "kind text written temperature topp other from to".split(" "), CHOOSES = ["order", "word", "key"];
const parsed = step => { const at = step.indexOf("="); return at < 0 ? [step, ""] : [step.slice(0, at), step.slice(at + 1)]; };
/** The pieces, the way of drawing, and a clean state, before anything is changed. */
const beginFrom = async (get, given) => {
  if (given.kind ?? given.text) putDown("kind", +(given.kind ?? 0));
  asks(downOf("kind"));
  // An address leaves the first text out; one that only presses keeps what stands there.
  if (Object.keys(given).length) text.value = given.text ?? text.defaultValue;
  for (const name of SAMPLING) if (given[name] !== undefined) { part(name).value = given[name]; sampling(name); }
  part("why").ariaPressed = "false";
  order = "previous"; keyAt = place = 0;
  part("out").replaceChildren();
  part("two").open = false;
  part("other").value = part("other").defaultValue;
  await cutText(get);
  if (!given.written) return;
  written = numbersOf(given.written, about.vocab);
  pieces = [...pieces, ...(await get("decode", {ids: written})).pieces].slice(0, about.most);
  query = pieces.length - 1;
  await out(get);
};
/** Sets what the steps say, from a clean state: the model reads once what comes of all. Returns the steps that are left, presses of something that takes its time; false for steps of another edition. */
root.take = async steps => {
  clearTimeout(typing);
  const pairs = steps.map(parsed), switches = data.decisions.map((_, i) => `switch${i}`), names = [...Object.keys(SETS), ...ASIDE, ...switches];
  const end = pairs.findIndex(([name]) => !names.includes(name)), own = end < 0 ? pairs : pairs.slice(0, end), rest = end < 0 ? [] : steps.slice(end);
  if (rest.some(step => !part(parsed(step.replace(/!$/, ""))[0]))) return false;
  let done = false;
  await during(async get => {
    const back = clean(), given = Object.fromEntries(own);
    const setting = more => tell(root, `Setting it up${more} …`);
    setting("");
    await beginFrom(get, given);
    let unsorted = true, undone = -1;
    const put = async () => {
      if (!unsorted) return;
      unsorted = false;
      ranked = order === "layer" ? allHeads().map(head => [head, 0]) : (await get("field", {order, query, key: keyAt, side: 1})).ranked;
      sorted = String(ids());
      sortedChanged = isChanged();
      place = 0;
    };
    const setOne = async ([name, value]) => {
      if (!CHOOSES.includes(name)) await put();
      const i = switches.indexOf(name);
      if (i < 0) { unsorted = SETS[name](value) || unsorted; return; }
      const k = wholeBelow(data.decisions[i].options.length, value);
      putDown(name, k);
      way = {...way, ...data.decisions[i].options[k][1]};
      if (k) undone = i;
    };
    try {
      for (const one of own) if (!ASIDE.includes(one[0])) await setOne(one);
    } catch (error) {
      if (error === STOP) throw error;
      clean();
      return show(get, `${error.message} `, true);
    }
    await put();
    const now = [...changesNow().map(([words]) => words), ...["first", "induction"].includes(order) ? [`heads sorted by ${data.orders[order]}`] : []].join("; "), first = `${back}${now ? `Set: ${now}. ` : ""}`;
    await show(get, first, false, ({layer}) => { if (layer % 10 === 0) setting(`: layer ${layer} of ${about.layers}`); });
    await second(get, given);
    if (undone >= 0) await comes(get, undone, way, back);
    if (whyOpen()) await because(get, first);
    done = true;
  });
  if (done) inSight(whyOpen() ? part("because") : part(getComputedStyle(part("model")).display === "grid" ? "model" : "bars"));
  return done ? rest : [];
};
/** The second text, and which vector goes where. */
const second = async (get, {other, from, to}) => {
  if (other !== undefined) { part("two").open = true; part("other").value = other; }
  await bothTexts(get);
  for (const [name, value] of [["from", from], ["to", to]]) if (value !== undefined) part(name).value = wholeBelow(part(name).length, value);
};
