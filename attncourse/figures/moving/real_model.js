// What a reader does with the model of real_model_engine.js, which computes in a worker.
const part = partsOf(root), line = root.querySelector(".am-say"), stage = root.querySelector(".am-stage"), all = name => [...stage.querySelectorAll(`[data-part="${name}"]`)], STOP = {};
const RIGHT = Object.assign({off: [], cuts: []}, ...data.decisions.map(one => one.options[0][1]));
/** A piece in a table, with its spaces, and in a sentence. */
const marked = text => text.replaceAll("\n", "↵").replaceAll(" ", "␣"), plain = text => text.trim() || marked(text), quoted = text => `“\u2068${plain(text)}\u2069”`;
const onPress = (name, does) => { part(name).onclick = does; };
const write = (name, text) => { part(name).textContent = text; };
const text = part("text"), above = document.documentElement.dataset.content_root, folder = location.protocol === "file:" || above === undefined;
let worker = null, asked = 0, run = 0, over = 0, waiting = new Map(), about = null;
let way = RIGHT, begun = [], written = [], pieces = [], query = 0, keyAt = 0, order = "previous", ranked = [], place = 0, weights = [], length = 0, writing = false, side = 18, wide = 0, sorted = "", sortedChanged = false, wanted = false;

// --- the worker ---
const gone = error => { for (const {fail} of waiting.values()) fail(error); waiting.clear(); worker?.terminate(); worker = null; };
/** Made from the script that the page carries. */
const hired = () => {
  if (worker) return worker;
  worker = new Worker(URL.createObjectURL(new Blob([data.worker], {type: "text/javascript"})));
  worker.onmessage = ({data: {number, progress, answer, refused, stopped}}) => {
    const {done, fail, seen} = waiting.get(number) || {};
    if (!done) return;
    if (progress) return seen?.(progress);
    waiting.delete(number);
    if (stopped) fail(STOP); else if (refused) fail(new Error(refused)); else done(answer);
  };
  worker.onerror = event => { event.preventDefault(); gone(new Error(event.message ? `The model stopped: ${event.message}` : "The model stopped; there may be too little memory. Load the page again.")); };
  return worker;
};
/** Asks the worker; the answer comes later, or an error whose message is a sentence. */
const ask = root.ask = (job, given = {}, seen = null) => new Promise((done, fail) => {
  waiting.set(++asked, {done, fail, seen});
  hired().postMessage({...given, job, number: asked});
});
/** Whether all that was begun is over. */
root.still = () => run > 0 && over === run;
/** The button that is being pressed: it shows that what it began goes on; and the one that has to wait for the model. */
let pressed = null, wish = null;
root.addEventListener("click", event => { pressed = event.target.closest("button"); }, true);
root.addEventListener("click", () => { pressed = null; });
/** Behind what the figure says a button that loads the model, which then does what was pressed. */
const offerLoad = button => {
  if (button && button !== part("load")) wish = {button, query, keyAt, head: current()[0]};
  line.append(" ", make("button", {textContent: "Load", onclick: () => part(folder ? "file" : "load").click()}));
};
/** Runs what takes a while in place of what runs; what was stopped says nothing, what is refused says why. */
const during = async work => {
  const button = pressed;
  wish = null;
  worker?.postMessage({stop: asked});
  writing = false;
  write("on", "Write on");
  const mine = ++run, slow = setTimeout(() => { stage.ariaBusy = true; if (button) button.ariaBusy = true; }, 300);
  const current = () => { if (mine !== run) throw STOP; };
  try { await work(async (job, given, seen) => { current(); const answer = await ask(job, {ids: ids(), way, ...given}, seen); current(); return answer; }); } catch (error) {
    if (error !== STOP && mine === run) tell(root, error.message);
    // What was to change has not changed.
    if (about?.kept && error !== STOP) {
      clean();
      part("why").ariaPressed = "false";
      part("because").hidden = true;
      setFirst(0);
      part("model").classList.toggle("rm-old", text.value !== data.kept.text);
      if (mine === run) offerLoad(button);
    }
  }
  clearTimeout(slow);
  if (button) button.ariaBusy = null;
  over++;
  if (mine === run) { stage.ariaBusy = false; fit(); }
  return mine === run;
};

// --- loading ---
const loads = on => { part("model").inert = on; for (const name of ["progress", "cancel"]) part(name).hidden = !on; part("load").disabled = on || folder; part("file").disabled = on; };
/** Shows the model of which `about` tells. */
const ready = () => {
  part("model").hidden = false;
  part("bars").before(line);
  const numbers = {...about, base: about.base.toLocaleString("en")};
  data.decisions.forEach((one, i) => all(`switch${i}`).forEach((button, k) => { button.textContent = one.options[k][0].replace(/\{(\w+)\}/g, (_, key) => numbers[key]); }));
  all("kind")[1].disabled = about.system === undefined;
  part("rank").max = about.layers * about.heads;
};
/** What is kept of the first text, before anything is loaded. */
const keep = said => data.kept && during(async get => {
  about = await get("keep", data.kept);
  ready();
  await encode(get);
  if (said) tell(root, said);
});
const loadModel = given => during(async get => {
  // What was typed a moment ago would stop it; it is read once the model is there.
  clearTimeout(typing);
  loads(true);
  tell(root, "Loading the model …");
  let quarter = 0;
  try {
    about = {...await get("load", given, ({done, total}) => {
      part("progress").value = total ? done / total : 0;
      const now = Math.floor(4 * done / total);
      if (now > quarter && now < 4) tell(root, `Loading the model: ${25 * (quarter = now)} % are here.`);
    }), name: (given.file?.name || data.file).split("/").at(-1)};
  } finally { loads(false); }
  part("loading").hidden = true;
  if (given.url && self.caches) part("forget").hidden = false;
  ready();
  part("about").textContent = `${about.name}: ${about.layers} layers of ${about.heads} heads, ${about.vocab.toLocaleString("en")} pieces. Loaded in ${shown(about.seconds, 1)} s.`
    + (about.fast ? "" : " This browser has no WebAssembly with SIMD, so everything takes many times as long.");
  // On a phone its keyboard would come.
  if (!matchMedia("(pointer:coarse)").matches) text.focus();
  await encode(get);
});
/** Loads the model, and then does what had to wait for it, where it was asked. */
const load = async given => {
  const wished = wish;
  if (!await loadModel(given) || !wished || about.kept) return;
  ({query, keyAt} = wished);
  place = Math.max(0, ranked.findIndex(([head]) => head === wished.head));
  await during(look);
  wished.button.click();
};
const address = folder ? "" : new URL(above + data.file, location.href).href;
onPress("load", () => load({url: address}));
part("file").onchange = event => { if (event.target.files.length) load({file: event.target.files[0]}); event.target.value = ""; };
onPress("cancel", () => { gone(STOP); loads(false); part("load").focus(); const said = "Cancelled. Nothing is kept of it."; tell(root, said); keep(said); });
// Until the file is there.
part("forget").hidden = true;
onPress("forget", async () => {
  part("forget").hidden = true;
  await self.caches?.delete("attncourse-model").catch(() => 0);
  tell(root, "The file is removed from this browser; the model runs until you leave the page.");
});
const memory = navigator.deviceMemory;
part("memory").textContent = (memory <= 2 ? `This device reports ${memory} GB of memory, which may be too little: the browser may close the page. ` : "")
  + `Nothing is loaded before you ask. The model takes about ${data.memory} MB of memory while this page is open. `
  + (folder ? `This page is read from a folder, or a notebook: choose the file ${data.file}, which lies in the book’s folder once “attncourse model” has fetched it and “make book” has run.` : "");
loads(false);
if (!folder) self.caches?.match(address).then(there => { if (there) { part("load").textContent = "Load the model (it is in this browser)"; part("forget").hidden = false; } }).catch(() => 0);
/** An address asks for a state before the model is there: this says so beside the button that loads it. */
root.waits = () => {
  wanted = true;
  part("wanted").hidden = false;
  part("model").classList.add("rm-old");
  tell(root, part("wanted").textContent);
  part("load").scrollIntoView({block: "center"});
};

// --- text, pieces, the next word ---
/** Which button of a group is down, and to put one down. */
const downOf = name => all(name).findIndex(one => one.ariaPressed === "true"), putDown = (name, k) => all(name).forEach((one, i) => { one.ariaPressed = i === k; });
const ids = () => [...begun, ...written], isChanged = () => JSON.stringify(way) !== JSON.stringify(RIGHT), chat = () => downOf("kind") === 1;
const drawing = () => ({temperature: +part("temperature").value, topP: +part("topp").value});
const headName = head => `${Math.floor(head / about.heads)}.${head % about.heads}`;
/** Reads the text anew, from its beginning: its pieces. */
const cutText = async get => {
  const answer = await get("encode", {text: text.value, chat: chat()}), count = answer.ids.length;
  const wrong = !text.value.trim() ? "Write something: a model goes on with what is there." : count > about.most - 16
    ? `These are ${count.toLocaleString("en")} pieces, and a text has room for ${about.most - 16}. Take some away.` : "";
  text.ariaInvalid = !!wrong;
  // What stands there is another text's.
  part("model").classList.toggle("rm-old", !!wrong || wanted && about.kept);
  if (wrong) throw new Error(wrong);
  if (answer.pieces[keyAt] !== pieces[keyAt]) keyAt = 0;
  begun = answer.ids; written = []; pieces = answer.pieces;
  // They were another text's.
  way = {...way, cuts: []};
  for (const name of ["curves", "carried"]) part(name).replaceChildren();
  query = begun.length - 1;
};
const encode = async (get, first = "") => {
  await cutText(get);
  await show(get, first, true);
  if (!about.kept) await bothTexts(get);
};
/** Everything that depends on text and switches; `first` is said before the likeliest word. */
const show = async (get, first = "", fresh = false, seen = ({left, layer}) => { if (left > 64 && layer === 1) tell(root, `Reading; ${left} pieces are left.`); }) => {
  const {next, none, ms, read} = await get("read", drawing(), seen);
  root.now = {ids: ids(), way, next, none, ms, read};
  const [best] = next, before = next.reduce((a, b) => b.before > a.before ? b : a), likeliest = none ? "No numbers come out." : `Likeliest next: ${quoted(best.text)}, ${percent(best.p)}`;
  bars(next, none, before);
  tell(root, `${first}${likeliest}${none ? "" : isChanged() ? `; before the changes: ${quoted(before.text)}, ${percent(before.before)}${before === best ? "" : `, now ${percent(before.p)}`}.` : "."}`);
  words();
  caption();
  await look(get);
  await field(get, fresh);
  if (part("lens").open) await lens(get);
  await because(get);
};
const bars = (next, none, was) => {
  const bar = (p, className = "") => make("i", {style: `width:${(100 * p).toFixed(2)}%`, className}), two = isChanged();
  part("bars").replaceChildren(make("table", {}, make("caption", {}, two ? "Next word (outlined: before the changes)" : "Next word"), ...next.map(({id, text, p, before}) => make("tr", {},
    make("th", {scope: "row"}, make("button", {type: "button", textContent: marked(text), ariaLabel: `${text.startsWith(" ") ? "space, " : ""}${plain(text)}`, title: "Write this one", onclick: () => during(get => put(get, id, text, p))})),
    make("td", {}, ...none ? [] : [bar(p)], ...two && before > .015 ? [bar(before, "rm-before")] : []), make("td", {}, percent(p)), make("td", {}, two ? percent(before) : "")))));
  const few = two ? [was, ...next.filter(one => one !== was)].slice(0, 2) : next.slice(0, 3);
  part("strip").replaceChildren(...none ? [] : few.map(({text, p, before}) => make("span", {}, make("b", {}, plain(text)), `${two ? `${percent(before).slice(0, -2)} → ` : ""}${percent(p)}`)));
};
const out = async get => {
  const {text: more} = written.length ? await get("decode", {ids: written}) : {text: ""};
  part("out").replaceChildren(...more ? [chat() ? "" : text.value, make("b", {}, more)] : []);
};
/** Writes a piece behind the text. */
const put = async (get, id, piece, p) => {
  if (ids().length >= about.most) throw new Error(`There is room for ${about.most} pieces here, and they are full.`);
  written.push(id); pieces.push(piece);
  query = pieces.length - 1;
  await out(get);
  await show(get, `Written: ${quoted(piece)}, ${percent(p)}. `);
};
const draw1 = get => get("draw", {...drawing(), u: random()});
let seed = data.seed;
/** A number from 0 to 1 (mulberry32). */
const random = () => {
  seed = seed + 0x6D2B79F5 | 0;
  let t = Math.imul(seed ^ seed >>> 15, 1 | seed);
  t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
  return ((t ^ t >>> 14) >>> 0) / 2 ** 32;
};
const NONE = "No numbers come out, so there is no next word.", END = "The model ends its text here.";
onPress("next", () => during(async get => {
  const {id, text: piece, p, ends} = await draw1(get);
  if (id < 0 || ends) throw new Error(id < 0 ? NONE : END);
  await put(get, id, piece, p);
}));
/** Word after word, until stopped; only words and bars meanwhile. */
onPress("on", () => {
  if (writing) return during(get => show(get, "Stopped. "));
  during(async get => {
    writing = true;
    write("on", "Stop");
    tell(root, "Writing …");
    const began = performance.now(), from = written.length;
    let why = "There is no more room. ";
    while (ids().length < about.most) {
      const {id, text: piece, ends} = await draw1(get);
      if (id < 0 || ends) { why = `${id < 0 ? NONE : END} `; break; }
      written.push(id); pieces.push(piece);
      query = pieces.length - 1;
      await out(get);
      // Milliseconds.
      root.perPiece = (performance.now() - began) / (written.length - from);
    }
    writing = false;
    write("on", "Write on");
    await show(get, why);
  });
});
onPress("anew", () => during(async get => { pieces.length = begun.length; written = []; query = begun.length - 1; await out(get); await show(get, "Taken back. "); }));
let typing = 0;
text.oninput = () => { clearTimeout(typing); typing = setTimeout(anew, 250); };
const anew = first => { clearTimeout(typing); part("out").replaceChildren(); return during(get => encode(get, first)); };
for (const button of all("example")) button.onclick = () => { const back = clean(); order = "previous"; text.value = button.value; anew(back); };
const asks = i => { write("asks", i ? "Your question" : "Your text"); };
pick(root, "kind", i => { asks(i); anew(); });
const SAMPLING = ["temperature", "topp"], sampling = name => { write(`${name}-now`, shown(+part(name).value, name === "topp" ? 2 : 1)); };
for (const name of SAMPLING) sampling(name), part(name).oninput = () => { sampling(name); if (begun.length) during(show); };

// --- pieces, arcs, heads ---
const words = () => {
  const box = part("words");
  box.replaceChildren(draw("svg", {"aria-hidden": "true"}), ...pieces.map((piece, j) => make("button", {type: "button", "data-part": "word", textContent: piece.replaceAll("\n", "↵"),
    className: j >= begun.length ? "rm-new" : "", onclick: () => ask1(j), onkeydown: event => {
      const to = j + ({ArrowRight: 1, ArrowLeft: -1}[event.key] || 0);
      if (to !== j && pieces[to] !== undefined) { event.preventDefault(); box.querySelectorAll("button")[to].focus(); ask1(to); }
    }})));
};
const ask1 = j => { query = j; during(async get => { await look(get); if (order === "word") await field(get, "same head"); if (part("lens").open) await lens(get); said(); await because(get); }); };
const weight = (head, j) => j < length ? weights[head * length + j] : 0, current = () => ranked[place] || [0, 0];
/** Fills a list with pieces by their numbers, of which one is chosen. */
const choices = (name, some, at) => { part(name).replaceChildren(...some.map((piece, j) => make("option", {value: j, textContent: `${j}: ${marked(piece)}`}))); part(name).value = at; };
/** Where the chosen piece looks, in all heads. */
const look = async get => {
  ({weights, length} = await get("row", {query}));
  if (keyAt >= length) keyAt = 0;
  choices("key", pieces.slice(0, length), keyAt);
  write("asker", quoted(pieces[query]));
  write("edge", `${quoted(pieces[query])} → ${quoted(pieces[keyAt])}`);
  part("order").querySelector("[value=word]")?.remove();
  part("order").append(make("option", {value: "word", textContent: `from “${plain(pieces[query])}” to “${plain(pieces[keyAt])}”`}));
  part("order").value = order;
  if (ranked.length) arcs();
  const box = part("words"), {offsetTop: top, offsetHeight: high} = box.querySelectorAll("button")[query];
  if (top < box.scrollTop || top + high > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 2;
};
const arcs = () => {
  const [head] = current(), box = part("words"), buttons = [...box.querySelectorAll("button")];
  const middle = node => [node.offsetLeft + node.offsetWidth / 2, node.offsetTop + 4];
  buttons.forEach((word, j) => {
    const w = weight(head, j);
    word.style.background = w ? `color-mix(in srgb,var(--key) ${Math.round(w * 60)}%,transparent)` : "";
    word.ariaPressed = j === query;
    word.tabIndex = j === query ? 0 : -1;
    word.ariaLabel = j < length ? `${plain(pieces[j])}, ${shown(100 * w, 0)} %` : plain(pieces[j]);
  });
  const [x, y] = middle(buttons[query]), cut = new Set(way.cuts.filter(([other, i]) => other === head && i === query).map(([, , j]) => j));
  // It does not count itself.
  box.querySelector("svg").style.height = 0;
  box.querySelector("svg").style.height = `${box.scrollHeight}px`;
  box.querySelector("svg").innerHTML = buttons.map((button, j) => {
    const w = weight(head, j);
    if (w < .03 && !cut.has(j) || j === query) return "";
    const [tx, ty] = middle(button), up = Math.min(y, ty) - Math.min(26, 8 + Math.abs(x - tx) / 8);
    const way = `d="M${x},${y}C${x},${up} ${tx},${up} ${tx},${ty}"`;
    if (cut.has(j)) return `<path class="rm-cut" ${way}/>`;
    return `<path ${way} style="stroke-width:${1 + 5 * w};opacity:${.5 + .5 * w}"/><path class="rm-press" data-key="${j}" ${way}><title>Why this score?</title></path>`;
  }).join("");
  const off = way.off.includes(head), layer = Math.floor(head / about.heads);
  write("name", `head ${headName(head)}`);
  part("rank").value = place + 1;
  write("head", `Switch head ${headName(head)} ${off ? "on" : "off"}`);
  write("layer", `Switch all of layer ${layer} ${ofLayer(layer).every(h => way.off.includes(h)) ? "on" : "off"}`);
  for (const [name, some] of [["cut", [head]], ["cutall", allHeads()]]) part(name).ariaPressed = isCut(some);
  const box2 = part("field"), here = box2.querySelector(".rm-here");
  if (here) {
    here.style.left = `${place % box2.across * side - 2}px`;
    here.style.top = `${Math.floor(place / box2.across) * side - 2}px`;
    here.style.width = here.style.height = `${side}px`;
  }
  root.now = {...root.now, head, score: current()[1], row: pieces.slice(0, length).map((_, j) => weight(head, j)), query};
};
/** What the head does, as a sentence. */
const said = () => {
  const [head, score] = current(), top = pieces.slice(0, length).map((piece, j) => [weight(head, j), piece]).sort((a, b) => b[0] - a[0]).slice(0, 3).filter(([w]) => w >= .01);
  tell(root, `Head ${headName(head)}${way.off.includes(head) ? ", switched off" : ""}: ${quoted(pieces[query])} looks at ${top.map(([w, piece]) => `${quoted(piece)} ${shown(100 * w, 0)} %`).join(", ") || "nothing"}.`
    + (order === "layer" ? "" : ` Number ${place + 1} of ${ranked.length} in this order (${shown(score)}).`));
};
const ofLayer = layer => Array.from({length: about.heads}, (_, h) => layer * about.heads + h);
/** All maps as one mask, through which the ink of the page is seen; a head that is off is faint. */
const field = async (get, fresh = false) => {
  side = innerWidth < 480 ? 16 : 18;
  const size = side - 2, answer = await get("field", {order, query, key: keyAt, side: size}), {cells, pictures} = answer;
  const [head] = current();
  // Who switches heads off, one after the other, goes on where they were.
  const scores = new Map(answer.ranked), kept = !fresh && sorted === String(ids());
  ranked = kept ? ranked.map(([other]) => [other, scores.get(other)]) : answer.ranked;
  sorted = String(ids());
  if (!kept) sortedChanged = isChanged();
  part("sort").hidden = order === "layer" || ranked.every(([, score], k) => !k || score <= ranked[k - 1][1]);
  place = fresh === true ? 0 : Math.max(0, ranked.findIndex(([other]) => other === head));
  root.now = {...root.now, ranked};
  const box = part("field"), across = box.across = Math.max(1, Math.floor(((wide = box.clientWidth) || 340) / side));
  const canvas = make("canvas", {width: across * side, height: Math.ceil(ranked.length / across) * side}), pen = canvas.getContext("2d"), picture = pen.createImageData(canvas.width, canvas.height);
  ranked.forEach(([head], k) => {
    const left = k % across * side, top = Math.floor(k / across) * side, faint = way.off.includes(head) ? .3 : 1;
    for (let y = 0; y < size; y++) for (let x = 0; x < size; x++) {
      const i = Math.floor(y * cells / size), j = Math.floor(x * cells / size), w = pictures[head * size * size + i * size + j];
      picture.data[4 * ((top + y) * canvas.width + left + x) + 3] = faint * (j > i && !w ? 0 : 24 + 231 * Math.sqrt(w / 255));
    }
  });
  pen.putImageData(picture, 0, 0);
  const url = `url(${canvas.toDataURL()})`;
  box.replaceChildren(make("div", {className: "rm-maps", style: `width:${canvas.width}px;height:${canvas.height}px;-webkit-mask-image:${url};mask-image:${url}`}), make("div", {className: "rm-here"}));
  box.ariaLabel = `All ${ranked.length} maps, the first in this order at the top left`;
  arcs();
  changes();
};
const sort = () => during(async get => { await look(get); await field(get, true); said(); });
onPress("sort", sort);
part("order").onchange = () => { order = part("order").value; sort(); };
const keyed = async get => { await look(get); if (order === "word") await field(get, true); };
part("key").onchange = () => { keyAt = +part("key").value; askWhy(); };
onPress("find", async () => { order = "word"; await sort(); inSight(part("words")); });
const chosen = at => { place = at; arcs(); said(); if (whyOpen() && !writing) during(because); };
part("rank").oninput = event => chosen(+event.target.value - 1);
onPress("field", event => {
  const box = part("field"), ground = box.getBoundingClientRect();
  const at = Math.floor((event.clientY - ground.top) / side) * box.across + Math.floor((event.clientX - ground.left) / side);
  if (at >= 0 && at < ranked.length) chosen(at);
});
/** Lays the maps out for the width that there is now; what runs goes on, and this comes after it. */
const fit = () => { if (ranked.length && root.still() && part("field").clientWidth !== wide) during(field); };
new ResizeObserver(fit).observe(part("field"));

// --- why this score ---
const isDown = name => part(name).ariaPressed === "true", whyOpen = () => isDown("why");
/** The score that the chosen head gives to one key: two vectors, their products, the sum, the softmax; said behind `first`, unless that is null. */
const because = async (get, first = null) => {
  part("because").hidden = !whyOpen();
  if (!whyOpen()) return;
  const [head] = current(), key = keyAt, {seen, by, plain: unturned, turned} = await get("why", {query, head}), at = seen.indexOf(key);
  part("turned").disabled = way.positions === "none";
  const title = `Head ${headName(head)}: ${quoted(pieces[query])} → ${quoted(pieces[key])}`, label = all("switch0")[downOf("switch0")].textContent;
  write("pair", title);
  root.why = null;
  write("both", "");
  if (at < 0) { part("sum").replaceChildren("This edge is cut, or hidden by mask or window: it has no score."); return; }
  const names = seen.map(j => `${j}: ${marked(pieces[j])}`), given = isDown("turned") ? turned : unturned;
  root.why = {...scoreSum(part("sum"), {...given, names, chosen: at, by, divided: label === "none" ? "not divided" : label}), head, seen};
  const down = isDown("turned"), [one, other] = (down ? [turned, unturned] : [unturned, turned]).map(({query, keys}) => { const {scores, weights} = scoreRow(query, keys, by); return `${shown(scores[at])}, a weight of ${percent(weights[at])}`; });
  const bare = "without the rotation in this head alone", told = `The score is ${one}${part("turned").disabled ? "" : down ? `; ${bare}, ${other}` : `, ${bare}; with it ${other}`}.`;
  write("both", told);
  if (first === null) return;
  tell(root, `${first}${title}. ${told}`);
  inSight(part("because"));
};
/** Scrolls to what came out, unless it is on the screen. */
const inSight = node => {
  const {top, bottom} = node.getBoundingClientRect(), low = innerHeight - part("strip").offsetHeight;
  if (top < 50 || bottom > low) node.scrollIntoView({block: bottom - top < low - 110 ? "center" : "start"});
};
/** The score of an edge, once what hangs on the edge is there. */
const askWhy = (before = keyed) => during(async get => { await before(get); await because(get, ""); });
const press = (name, before) => { part(name).ariaPressed = !isDown(name); askWhy(before); };
onPress("why", () => {
  // Where no key was chosen, that of the thickest arc.
  const {row} = root.now, unseen = !whyOpen() && !keyAt && row[0] < .03;
  if (unseen) keyAt = row.indexOf(Math.max(...row));
  press("why", unseen ? keyed : look);
});
onPress("turned", () => press("turned", look));
onPress("words", event => {
  const {key} = event.target.dataset;
  if (key === undefined) return;
  keyAt = +key;
  pressed = part("why");
  pressed.ariaPressed = "true";
  askWhy();
});

// --- what is changed ---
const alter = (change, first = "", seen = undefined) => { way = {...way, ...change}; return during(get => show(get, first, false, seen)); };
/** The heads that are off once these are on again, or off. */
const toggled = heads => {
  const rest = way.off.filter(head => !heads.includes(head));
  return heads.every(head => way.off.includes(head)) ? rest : [...rest, ...heads].sort((a, b) => a - b);
};
const toggle = (heads, name = heads.length > 1 ? `Layer ${Math.floor(heads[0] / about.heads)}` : `Head ${headName(heads[0])}`) => {
  const off = toggled(heads);
  alter({off}, `${name} ${off.includes(heads[0]) ? "off" : "on"}. `);
};
onPress("head", () => toggle([current()[0]]));
onPress("layer", () => toggle(ofLayer(Math.floor(current()[0] / about.heads))));
const allHeads = () => Array.from({length: about.layers * about.heads}, (_, head) => head);
/** The cuts that there are, and those of one edge in some heads. */
const withCuts = (heads, i = query, j = keyAt) => {
  const known = new Set(way.cuts.map(String));
  return [...way.cuts, ...heads.map(head => [head, i, j]).filter(one => !known.has(String(one)))];
};
const inHeads = heads => heads.length === 1 ? `head ${headName(heads[0])}` : heads.length === about.layers * about.heads ? "all heads" : `${heads.length} heads`;
/** Whether the chosen edge is cut in all of these heads. */
const isCut = heads => withCuts(heads).length === way.cuts.length;
const cut = heads => isCut(heads) ? alter({cuts: way.cuts.filter(([head, i, j]) => i !== query || j !== keyAt || !heads.includes(head))}, `Taken back in ${inHeads(heads)}. `) : alter({cuts: withCuts(heads)}, `Cut in ${inHeads(heads)}: ${quoted(pieces[query])} does not look at ${quoted(pieces[keyAt])}. `);
onPress("cut", () => cut([current()[0]]));
onPress("cutall", () => cut(allHeads()));
/** The edges that are cut, each with its heads. */
const edges = () => {
  const found = new Map();
  for (const [head, i, j] of way.cuts) found.set(`${i}-${j}`, [...found.get(`${i}-${j}`) || [], head]);
  return [...found].map(([edge, heads]) => [...edge.split("-").map(Number), heads]);
};
/** All that is changed: in words, and what takes it back. */
const changesNow = () => {
  const list = [], single = [];
  for (let layer = 0; layer < about.layers; layer++) {
    const heads = ofLayer(layer), off = heads.filter(head => way.off.includes(head));
    if (off.length === heads.length) list.push([`layer ${layer} off`, () => toggle(heads)]); else single.push(...off);
  }
  // As many buttons would push all else away.
  if (single.length > 4) list.push([`${single.length} heads off`, () => toggle(single, `${single.length} heads`)]);
  else for (const head of single) list.push([`head ${headName(head)} off`, () => toggle([head])]);
  for (const [i, j, heads] of edges()) list.push([`${quoted(pieces[i])} ⇥ ${quoted(pieces[j])} cut in ${inHeads(heads)}`, () => alter({cuts: way.cuts.filter(([, a, b]) => a !== i || b !== j)}, "Taken back. ")]);
  return [...list, ...undoneIn(way).map(([i, k]) => [labelOf(i, k), () => all(`switch${i}`)[0].click()])];
};
/** What is changed, each with a button that takes it back. */
const changes = () => {
  const many = way.off.length;
  setFirst(many <= 64 && String(firstOf(many)) === String(way.off) ? many : 0);
  const list = changesNow();
  part("changed").replaceChildren(...list.map(([words, back]) => make("button", {type: "button", textContent: `${words} ×`, ariaLabel: `${words}: take back`, onclick: back})), ...list.length ? [make("button", {type: "button", textContent: "Put all back", onclick: putBack})] : []);
};
const COUNT = 12, labelOf = (i, k) => `${data.decisions[i].name}: ${all(`switch${i}`)[k].textContent}`;
/** What a window that is wider than the text does. */
const idle = (way, more = 0) => way.window && ids().length + more <= way.window;
/** The decisions that a way undoes, each with the option that it takes. */
const undoneIn = way => data.decisions.flatMap(({options}, i) => options.flatMap(([, sets], k) => k && Object.keys(sets).every(key => sets[key] === way[key]) ? [[i, k]] : []));
/** All that a way changes, in words. */
const wordsOf = way => [...undoneIn(way).map(one => labelOf(...one)),
  ...[[way.off, "head", "off"], [way.cuts, "edge", "cut"]].flatMap(([{length: n}, what, gone]) => n ? `${n} ${what}${n > 1 ? "s" : ""} ${gone}` : [])].join("; ");
/** A decision undone: the next word, and how the model goes on with and without it. */
const undo = (i, k) => {
  way = {...way, ...data.decisions[i].options[k][1]};
  during(async get => {
    await show(get, `${labelOf(i, k)}. ${k && idle(way) ? `The text has ${ids().length} pieces, so this window hides none of them. ` : ""}`);
    if (k) await comes(get, i, way);
  });
};
const goesOn = async (get, way) => { const {ids: more, text} = await get("goesOn", {way, count: COUNT}); return more.length ? text.replaceAll("\n", "↵") : "nothing: no numbers come out, or the text ends"; };
let of = "", rows = [], halted = "";
/** Says behind the table's caption if it is not whole, or the text above is another by now. */
const caption = () => {
  const last = part("tried").querySelector("caption")?.lastChild;
  if (last) last.data = of === String(ids()) ? halted : " (the text above is another by now)";
};
/** A row of the table of sentences: what was undone, how it goes on, where the book decides it. */
const comes = async (get, i, way, first = "") => {
  if (of !== String(ids())) rows = [{words: "as it is", text: await goesOn(get, RIGHT)}];
  of = String(ids()); halted = "";
  const {page} = data.decisions[i], words = wordsOf(way), text = await goesOn(get, way), note = idle(way, COUNT) ? " – wider than the text" : "";
  rows = [...rows.filter(row => row.words !== words), {words, text, page, note}];
  root.tried = rows;
  const whole = pieces.join("").replaceAll("\n", "↵"), end = whole.length > 60 ? `… ${whole.slice(-60)}` : whole;
  part("tried").replaceChildren(make("table", {className: "rm-tried"}, make("caption", {}, `The next ${COUNT} pieces after ${quoted(end)}, the likeliest each time`, ""), ...rows.map(row => make("tr", {},
    make("th", {scope: "row"}, row.words, row.note || "", ...row.page && above !== undefined ? [" ", linked(make("a", {textContent: `(${+row.page.slice(0, 2)})`, ariaLabel: `chapter ${+row.page.slice(0, 2)}`}), row.page)] : []), make("td", {dir: "auto"}, row.text)))));
  tell(root, `${first}${words}${note}. It goes on: “${text}”; as it is: “${rows[0].text}”.`);
};
const linked = (node, page) => { node.href = `${above}book/${page}.html`; return node; };
if (above !== undefined) for (const node of root.querySelectorAll("[data-page]")) { linked(node, node.dataset.page); node.hidden = false; }
data.decisions.forEach((_, i) => pick(root, `switch${i}`, k => undo(i, k)));
onPress("each", async () => {
  const button = part("each"), words = button.textContent, wrong = data.decisions.flatMap(({options}, i) => options.slice(1).map(([, sets]) => [i, sets]));
  const ended = await during(async get => {
    for (const [n, [i, sets]] of wrong.entries()) {
      button.textContent = `Undoing ${n + 1} of ${wrong.length} …`;
      await comes(get, i, {...RIGHT, ...sets});
    }
    tell(root, `All ${rows.length - 1} are in the table.`);
    inSight(part("tried"));
    if (part("lens").open) await lens(get);
  });
  button.textContent = words;
  if (!ended) { halted = " (stopped: what you chose since went first)"; caption(); }
});
const asRight = () => data.decisions.forEach((_, i) => putDown(`switch${i}`, 0));
/** Takes all changes back, those of drawing and of the rotation, too; says which there were. */
const clean = () => {
  const words = [...about ? changesNow().map(([words]) => words) : [], ...SAMPLING.flatMap(name => part(name).value === part(name).defaultValue ? [] : `${name === "topp" ? "Top-p" : "Temperature"} ${part(`${name}-now`).textContent}`)];
  way = RIGHT;
  asRight();
  for (const name of SAMPLING) { part(name).value = part(name).defaultValue; sampling(name); }
  part("turned").ariaPressed = "true";
  return words.length ? `Put back: ${words.join("; ")}. ` : "";
};
const putBack = () => { clean(); alter(RIGHT, "All is as it was. "); };
onPress("back", putBack);

// --- the first heads of an order, and ten orders by lot ---
const COUNTS = [0, 1, 2, 4, 8, 16, 32, 64], DRAWS = 10, firstOf = k => ranked.slice(0, k).map(([head]) => head).sort((a, b) => a - b);
const setFirst = k => {
  part("first").value = k;
  write("first-now", !k && way.off.length ? `${way.off.length} off, not this order’s first` : k);
};
part("first").oninput = event => { write("first-now", event.target.value); };
part("first").onchange = async event => {
  const k = +event.target.value;
  await alter({off: firstOf(k)}, `The first ${k} heads of this order are off. `, ({layer}) => { write("first-now", `${k}: layer ${layer} of ${about.layers} …`); });
  changes();
};
/** Progress in the button that was pressed. */
const counted = (name, total) => { const words = part(name).textContent; return [({tried}) => { write(name, `${tried} of ${total} …`); }, () => { write(name, words); }]; };
onPress("curve", async () => {
  const counts = COUNTS.filter(k => k <= ranked.length), [progress, over] = counted("curve", 1 + (counts.length - 1) * (1 + DRAWS));
  await during(async get => {
    const {id, text} = root.now.next.reduce((a, b) => b.before > a.before ? b : a), heads = ranked.map(([head]) => head);
    const drawn = Array.from({length: DRAWS}, () => heads.map(head => [random(), head]).sort((a, b) => a[0] - b[0]).map(([, head]) => head)), orders = [heads, ...drawn];
    const lists = [[], ...orders.flatMap(order => counts.slice(1).map(k => order.slice(0, k)))];
    const chances = await get("without", {way: {...way, off: []}, lists, id}, progress), part1 = counts.length - 1;
    const curves = orders.map((_, i) => [chances[0], ...chances.slice(1 + i * part1, 1 + (i + 1) * part1)]), [own, ...lots] = curves;
    root.curve = {counts, curves, id, orders};
    const at = counts.indexOf(Math.min(8, counts.at(-1))), middle = lots.map(one => one[at]).sort((a, b) => a - b);
    const told = `${quoted(text)}: ${percent(own[0])} with all heads; without the first ${counts[at]} of this order ${percent(own[at])}, without ${counts[at]} by lot ${percent(middle[0])} to ${percent(middle.at(-1))} in ${DRAWS} draws.`;
    part("curves").replaceChildren(make("p", {}, `Probability of ${quoted(text)}: `, make("span", {className: "am-key"}, "━ this order"), " ", make("span", {className: "rm-lot"}, `─ ${DRAWS} orders by lot`)), lineChart([...lots.map(values => ({values, role: "quiet"})), {values: own, role: "key", thick: 3}], counts.map(String), "heads switched off", told), make("p", {}, told));
    tell(root, told);
    inSight(part("curves"));
  });
  over();
});

// --- two texts ---
let others = [];
const bothTexts = async get => {
  const {ids: found, pieces: texts} = await get("encode", {text: part("other").value, chat: false});
  if (!found.length || found.length > about.most) throw new Error(`A second text has 1 to ${about.most} pieces.`);
  const differs = found.findIndex((id, j) => id !== ids()[j]), place = found.length === ids().length && differs >= 0 ? differs : -1;
  const again = String(others) === String(found) && part("to").length === pieces.length, [from, to] = again ? [part("from").value, part("to").value] : place < 0 ? [found.length - 1, pieces.length - 1] : [place, place];
  others = found;
  choices("from", texts, from);
  choices("to", pieces, to);
};
// What runs fills it, too.
part("two").ontoggle = () => { if (part("two").open && begun.length && root.still()) during(bothTexts); };
part("other").onchange = () => { part("two").open = true; during(bothTexts); };
onPress("carry", async () => {
  const [progress, over] = counted("carry", about.layers);
  await during(async get => {
    await bothTexts(get);
    const from = +part("from").value, to = +part("to").value, {answers, runs, rows} = await get("carry", {other: others, from, to}, progress);
    const [own, other] = answers.map(({text}) => quoted(text)), [mine, theirs] = [0, 1].map(i => rows.map(row => row[i])), turned = rows.findIndex(([a, b]) => b > a), back = rows.findLastIndex(([a, b]) => b > a);
    root.carried = {answers, runs, rows, from, to};
    const told = answers[0].id === answers[1].id ? `Both texts go on with ${own}: take another.`
      : `${own} ${percent(runs[0][0])}, ${other} ${percent(runs[0][1])} as it is. With the vector carried over ${turned < 0 ? `${other} is never the likelier of the two` : `after layers ${turned} to ${back} ${other} is the likelier, at most ${percent(Math.max(...theirs))}`}.`;
    part("carried").replaceChildren(lineChart([{values: mine, role: "query", thick: 2, dash: "5 3"}, {values: theirs, role: "key", thick: 3}], rows.map((_, l) => l % 5 ? "" : String(l)), "after this layer", told), make("p", {}, make("span", {className: "am-query"}, `┅ ${own}`), " ", make("span", {className: "am-key"}, `━ ${other}`)), make("p", {}, told));
    tell(root, told);
    inSight(part("carried"));
  });
  over();
});

// --- the lens ---
/** A column a piece, a row a layer: what the model would say if it stopped there. */
const lens = async get => {
  if (about.kept) await get("lens", {query});
  const first = Math.max(0, Math.min(query, pieces.length - 24)), shownPieces = pieces.slice(first, first + 24), box = part("lens").querySelector(".am-wide");
  const table = make("table", {className: "rm-lens"}, make("thead", {}, make("tr", {}, make("td"), ...shownPieces.map((piece, j) => make("th", {scope: "col", className: first + j === query ? "am-query" : ""}, marked(piece))))),
    make("tbody", {}, ...Array.from({length: about.layers + 1}, (_, layer) => make("tr", {}, make("th", {scope: "row"}, layer ? `after ${layer - 1}` : "no layer"), ...shownPieces.map(() => make("td"))))));
  box.replaceChildren(table);
  root.lens = [];
  for (const j of [query - first, ...shownPieces.keys()]) {
    if (root.lens[first + j]) continue;
    const {rows} = await get("lens", {query: first + j});
    root.lens[first + j] = rows;
    rows.forEach(({text, p}, layer) => {
      const cell = table.tBodies[0].rows[layer].cells[j + 1];
      cell.textContent = marked(text);
      cell.title = `${text}, ${percent(p)}`;
      cell.style.background = `color-mix(in srgb,var(--value) ${Math.round(p * 60)}%,transparent)`;
    });
  }
  // The last column is the one that says the next word.
  box.scrollLeft = 1e5;
};
part("lens").ontoggle = () => { if (part("lens").open && begun.length) during(async get => { await lens(get); const row = root.lens[query]; tell(root, `Under ${quoted(pieces[query])} the last layer says ${quoted(row.at(-1).text)}; it stands first from layer ${row.length - 2 - [...row].reverse().findIndex(one => one.id !== row.at(-1).id) + 1} on.`); }); };
part("loading").after(line);
keep();
