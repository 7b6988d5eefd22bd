// What the page asks of the model, one after the other; it answers with messages that bear the number
// of what was asked.
let model = null, base = null, other = null, stopped = 0, rested = 0, fetching = null;
const STOP = {}, same = way => JSON.stringify(way) === JSON.stringify(RIGHT), nextTurn = () => new Promise(go => setTimeout(go));
/** The session of a way to compute: what was read as it is, and as it was changed last, stays read. */
const sessionOf = way => {
  if (same(way)) return base ??= model.session();
  if (JSON.stringify(other?.way) !== JSON.stringify(way)) other = model.session(way);
  return other;
};
/** The session of a way, once it has read the ids. */
const readAs = async (way, ids, breathe, tell) => {
  const session = sessionOf(way);
  await model.read(session, ids, breathe, tell);
  return session;
};
const LOAD = "Shown is one kept text. Load the model for this.";
/** What is kept of one text, in the model's place before it is loaded: where all heads look, and what comes next. */
class Kept {
  constructor({text, ids, pieces, maps, next, about}) {
    const {layers, heads} = about, count = layers * heads, bytes = Uint8Array.from(atob(maps), c => c.charCodeAt(0)), size = ids.length * (ids.length + 1) / 2;
    const row = i => Uint16Array.from({length: count * (i + 1)}, (_, at) => 257 * bytes[Math.floor(at / (i + 1)) * size + i * (i + 1) / 2 + at % (i + 1)]);
    const texts = new Map(ids.map((id, i) => [id, pieces[i]])), none = () => refuse(LOAD);
    Object.assign(this, {layers, heads, count, ids, maps: ids.map((_, i) => row(i)), next: none, logits: none, pairs: none});
    this.likeliest = next.map(([id, text, p]) => ({id, text, p, before: p}));
    this.pieces = {encode: given => given === text ? ids : refuse(LOAD), chat: none, decode: some => some.map(id => texts.get(id)).join("")};
  }
  session(way = RIGHT) { return {way, maps: this.maps}; }
  read({way}, ids) { return same(way) && String(ids) === String(this.ids) ? 0 : refuse(LOAD); }
}
/** Probabilities at a temperature, 0 gives all to the likeliest; of them the likeliest whose sum reaches topP. */
const chancesOf = (logits, temperature = 1, topP = 1) => {
  const chances = new Float64Array(logits.length);
  let best = 0, sum = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i] > logits[best]) best = i;
  if (!temperature) chances[best] = 1;
  else {
    for (let i = 0; i < logits.length; i++) sum += chances[i] = Math.exp((logits[i] - logits[best]) / temperature);
    for (let i = 0; i < logits.length; i++) chances[i] /= sum;
    if (topP < 1) {
      let kept = 0;
      for (const i of [...chances.keys()].sort((a, b) => chances[b] - chances[a] || a - b)) if (kept < topP) kept += chances[i]; else chances[i] = 0;
      for (let i = 0; i < chances.length; i++) chances[i] /= kept;
    }
  }
  return chances;
};
const most = (numbers, count) => {
  const best = [];
  for (let i = 0; i < numbers.length; i++) if (best.length < count || numbers[i] > numbers[best.at(-1)]) {
    best.splice(best.findLastIndex(j => numbers[j] >= numbers[i]) + 1, 0, i);
    best.length = Math.min(best.length, count);
  }
  return best;
};
/** A piece as it looks; bytes that are no character as numbers. */
const seen = id => {
  const text = model.pieces.decode([id]), hex = b => b.toString(16).toUpperCase().padStart(2, "0");
  return text.includes("\ufffd") ? `⟨${[...model.pieces.tokens[id]].map(sign => hex(BYTE.get(sign))).join("\u00a0")}⟩` : text;
};
/** The file from the browser's store, or from the book's server into it. */
const kept = async (url, tell) => {
  const store = await self.caches?.open("attncourse-model").catch(() => null), known = await store?.match(url);
  if (known) return known.blob();
  const get = async () => {
    fetching = new AbortController();
    const answer = await fetch(url, {signal: fetching.signal}).catch(error => error.name === "AbortError" ? Promise.reject(STOP)
      : refuse("The file could not be fetched: the book’s server does not answer. Go online, or choose the file."));
    if (!answer.ok) refuse(`The book’s server has no such file (it says ${answer.status}). Choose the file, or have “make book” put it beside the pages.`);
    let done = 0;
    const total = +answer.headers.get("content-length");
    return new Response(answer.body.pipeThrough(new TransformStream({transform(part, out) { tell({done: done += part.length, total}); out.enqueue(part); }})));
  };
  const broken = error => fetching.signal.aborted ? Promise.reject(STOP) : error instanceof Refused || error === STOP ? Promise.reject(error)
    : refuse("The connection broke before the file was whole. Try again, or choose the file.");
  if (store) {
    const answer = await get();
    try { await store.put(url, answer); } catch (error) { if (error.name !== "QuotaExceededError") await broken(error); }
    const there = await store.match(url);
    if (there) return there.blob();
  }
  return (await get()).blob().catch(broken);
};
const JOBS = {
  keep(kept) { model = new Kept(kept); return {...kept.about, most: MOST, kept: true}; },
  async load({url, file, plain}, tell, breathe) {
    const began = performance.now(), blob = file || await kept(url, tell);
    if (!(model instanceof Kept)) model = base = other = null;
    if (new TextDecoder().decode(await blob.slice(0, 4).arrayBuffer()) !== "GGUF") {
      if (url) await self.caches?.delete("attncourse-model").catch(() => 0);
      refuse(blob.size ? `This is no GGUF file. ${ANOTHER}` : `The file is empty. ${ANOTHER}`);
    }
    const made = new Llama(blob.size, plain), reader = blob.stream().getReader();
    for (let at = 0;;) {
      const {done, value} = await reader.read().catch(() => refuse("The file cannot be read any more. Choose it again."));
      if (done) break;
      made.bytes.set(value, at);
      at += value.length;
      tell({done: at, total: blob.size, read: true});
      await breathe();
    }
    try { model = made.open(); base = other = null; } catch (error) {
      if (url) await self.caches?.delete("attncourse-model").catch(() => 0);
      throw error;
    }
    const {name, layers, heads, vocab, size, d, dHead, pieces} = model;
    return {name, layers, heads, vocab, size, d, dHead, base: model.base, most: MOST, system: pieces.system, fast: !!model.times4, seconds: (performance.now() - began) / 1000};
  },
  encode({text, chat}) {
    const ids = chat ? model.pieces.chat(text) : model.pieces.encode(text);
    return {ids, pieces: ids.slice(0, MOST).map(seen)};
  },
  /** The next piece's probabilities, and what they are with nothing changed. */
  async read({ids, way, temperature, topP, bars = 8}, tell, breathe) {
    const began = performance.now(), session = sessionOf(way), read = await model.read(session, ids, breathe, tell);
    if (model.likeliest) return temperature === 1 && topP === 1 ? {next: model.likeliest, none: false, ms: 0, read} : refuse(LOAD);
    const chances = chancesOf(model.next(session), temperature, topP), none = Number.isNaN(chances[0]), ms = performance.now() - began;
    let before = chances;
    if (!same(way)) before = chancesOf(model.next(await readAs(RIGHT, ids, breathe, tell)), temperature, topP);
    const larger = none ? before : chances.map((p, i) => Math.max(p, before[i]));
    const next = most(larger, bars).map(id => ({id, text: seen(id), p: none ? NaN : chances[id], before: before[id]}));
    return {next: next.filter(one => none || one.p || one.before).sort((a, b) => b.p - a.p || b.before - a.before), none, ms, read};
  },
  /** A piece drawn from what follows; u, from 0 to 1, decides which. */
  async draw({ids, way, temperature, topP, u}, tell, breathe) {
    const session = await readAs(way, ids, breathe);
    const chances = chancesOf(model.next(session), temperature, topP);
    if (Number.isNaN(chances[0])) return {id: -1};
    let id = chances.findIndex(p => (u -= p) < 0);
    if (id < 0) id = most(chances, 1)[0];
    return {id, text: seen(id), p: chances[id], ends: id === model.pieces.end};
  },
  /** The likeliest continuation of so many pieces. */
  async goesOn({ids, way, count}, tell, breathe) {
    const session = sessionOf(way), all = [...ids], began = performance.now();
    while (all.length < Math.min(ids.length + count, MOST)) {
      await model.read(session, all, breathe);
      const logits = model.next(session), id = most(logits, 1)[0];
      if (Number.isNaN(logits[id]) || id === model.pieces.end) break;
      all.push(id);
    }
    return {ids: all.slice(ids.length), text: model.pieces.decode(all.slice(ids.length)), ms: performance.now() - began};
  },
  decode({ids}) { return {text: model.pieces.decode(ids), pieces: ids.map(seen)}; },
  /** What a token looks at, in every head. */
  async row({ids, way, query}, tell, breathe) {
    const session = await readAs(way, ids, breathe);
    return {length: session.maps[query].length / model.count, weights: Float32Array.from(session.maps[query], w => w / 65535)};
  },
  /** Why a head looks where it looks: a token's query, and the keys that it sees. */
  async why({ids, way, query, head}, tell, breathe) {
    const session = await readAs(way, ids, breathe);
    return model.pairs(session, head, query);
  },
  /** All heads by where their attention falls, and a picture of each map. */
  async field({ids, way, order, query, key, side}, tell, breathe) {
    const session = sessionOf(way), {count} = model, n = ids.length, pictures = new Uint8Array(count * side * side);
    await model.read(session, ids, breathe);
    const weight = (head, i, j) => { const map = session.maps[i], length = map.length / count; return j < length ? map[head * length + j] / 65535 : 0; };
    const keysOf = {previous: i => i ? [i - 1] : [], first: i => i ? [0] : [], word: i => i === query ? [key] : [],
      induction: i => ids.flatMap((_, j) => j && j <= i && ids[j - 1] === ids[i] ? [j] : [])}[order] || (() => []);
    const asked = ids.map((_, i) => [i, keysOf(i)]).filter(([, keys]) => keys.length);
    const ranked = Array.from({length: count}, (_, head) => [head, asked.reduce((sum, [i, keys]) => keys.reduce((all, j) => all + weight(head, i, j), sum), 0) / (asked.length || 1)]);
    if (order !== "layer") ranked.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    // A picture's cell holds the largest weight of those that fall on it.
    const cells = Math.min(side, n), place = Int32Array.from({length: n}, (_, i) => Math.floor(i * cells / n));
    for (let i = 0; i < n; i++) {
      const map = session.maps[i], length = map.length / count;
      for (let head = 0; head < count; head++) for (let j = 0; j < length; j++) {
        const at = head * side * side + place[i] * side + place[j];
        pictures[at] = Math.max(pictures[at], map[head * length + j] >> 8);
      }
      if (i % 16 === 0) await breathe();
    }
    return {ranked, cells, pictures, asked: asked.length};
  },
  /** What the model would say under a token if it stopped after each block. */
  async lens({ids, way, query}, tell, breathe) {
    const session = await readAs(way, ids, breathe);
    const logits = model.logits(session.stream[query], way.norm), {vocab} = model;
    return {rows: Array.from({length: model.layers + 1}, (_, layer) => {
      const row = logits.subarray(layer * vocab, (layer + 1) * vocab), [id] = most(row, 1);
      let sum = 0;
      for (let i = 0; i < vocab; i++) sum += Math.exp(row[i] - row[id]);
      return Number.isNaN(row[id]) ? {id: -1, text: "", p: 0} : {id, text: seen(id), p: 1 / sum};
    })};
  },
  /** The probability of a piece with heads off, for one list of heads after the other. */
  async without({ids, way, lists, id}, tell, breathe) {
    const session = model.session(way), chances = [];
    for (const off of lists) {
      Object.assign(session, {off: new Set(off), ids: [], maps: [], stream: []});
      await model.read(session, ids, breathe);
      chances.push(chancesOf(model.next(session))[id]);
      tell({tried: chances.length});
    }
    return chances;
  },
  /** A vector of another text in the place of one of this, after each block: what becomes of both answers. */
  async carry({ids, other, from, to, way}, tell, breathe) {
    const {d} = model, source = model.session(way), session = model.session(way), chances = async (session, ids) => { await model.read(session, ids, breathe); return chancesOf(model.next(session)); };
    const runs = [await chances(session, ids), await chances(source, other)], answers = runs.map(run => most(run, 1)[0]), both = run => answers.map(id => run[id]), rows = [];
    for (let layer = 0; layer < model.layers; layer++) {
      const patch = {layer, at: to, vector: source.stream[from].slice((layer + 1) * d, (layer + 2) * d)};
      Object.assign(session, {patch, ids: [], maps: [], stream: []});
      rows.push(both(await chances(session, ids)));
      tell({tried: layer + 1});
    }
    return {answers: answers.map(id => ({id, text: seen(id)})), runs: runs.map(both), rows};
  },
  /** The logits after the last tokens, or after all. */
  async logits({ids, way, last = ids.length}, tell, breathe) {
    const session = await readAs(way, ids, breathe);
    return {logits: ids.slice(-last).map((_, i) => model.next(session, ids.length - last + i).slice())};
  },
};
let line = Promise.resolve();
self.onmessage = ({data}) => {
  if (data.stop) { stopped = data.stop; fetching?.abort(); return; }
  const {number, job} = data, tell = (said, move = []) => self.postMessage({number, ...said}, move);
  const breathe = async () => {
    if (performance.now() - rested > 40) { await nextTurn(); rested = performance.now(); }
    if (number <= stopped) throw STOP;
  };
  line = line.then(async () => {
    try {
      rested = 0;
      await breathe();
      tell({answer: await JOBS[job](data, progress => tell({progress}), breathe)});
    } catch (error) {
      tell(error === STOP ? {stopped: true} : {refused: error instanceof Refused ? error.message
        : error instanceof RangeError ? "There is not enough memory here for this. Close other tabs, or take a shorter text." : `Something went wrong: ${error.message}`});
    }
  });
};
