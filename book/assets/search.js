// The search page: sections and glossary entries by the words in them. What it needs of tools/search.py's
// scripts it loads when asked: titles, the words of a first letter, texts of what is shown.

const [PAGE, CHAPTER, SECTION, TERM] = [0, 1, 2, 3];
const FIRST = 10; // results that are shown at once
const loaded = new Map(); // by name, a promise and what fulfils it

window.attncourseSearch = (name, data) => loaded.get(name).give(data);
const load = (name) => {
  if (!loaded.has(name)) {
    const one = {};
    one.came = new Promise((give) => { one.give = give; });
    loaded.set(name, one);
    const script = document.createElement("script");
    script.src = `_static/search/${name}.js`;
    document.head.append(script);
  }
  return loaded.get(name).came;
};

/** A word without its plural, as tools/search.py folds it. */
const folded = (word) => {
  if (word.length > 4 && word.endsWith("ies")) return `${word.slice(0, -3)}y`;
  return word.length > 3 && /[^s]s$/.test(word) ? word.slice(0, -1) : word;
};
const wordsOf = (text) => (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).map(folded);

/** The places by how well each fits the words: [place, score], the best first. */
const rank = async (asked) => {
  const { places, shelves } = await load("places");
  const scores = new Map();
  for (const word of asked) {
    const shelf = /^[a-z0-9]/.test(word) ? word[0] : "other";
    const known = shelves.includes(shelf) ? await load(`words-${shelf}`) : {};
    const here = new Map(); // the best of all words that begin so
    for (const [other, found] of Object.entries(known)) {
      const fit = other === word ? 1 : word.length > 2 && other.startsWith(word) ? 0.4 : 0;
      for (let i = 0; fit && i < found.length; i += 2) {
        here.set(found[i], Math.max(here.get(found[i]) ?? 0, fit * found[i + 1]));
      }
    }
    const rare = Math.log(1 + places.length / (1 + here.size));
    for (const [i, score] of here) {
      const sum = scores.get(i) ?? { score: 0, count: 0 };
      scores.set(i, { score: sum.score + rare * score, count: sum.count + 1 });
    }
  }
  const all = [...scores].filter(([, { count }]) => count === asked.length);
  return all.map(([i, { score }]) => {
    const [, , title, kind] = places[i];
    const named = wordsOf(title.replace(/^[\d.]+ /, "").split(":")[0]);
    const begins = asked.every((word) => named.some((other) => other.startsWith(word)));
    const whole = begins ? asked.length / named.length : 0;
    if (kind === TERM) return [i, whole === 1 && named.every((word) => asked.includes(word)) ? 1e6 : score / 2];
    return [i, kind === PAGE ? score / 2 : score + (kind === CHAPTER ? 1000 : 20) * whole];
  }).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
};

const make = (name, properties = {}, ...children) => {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
};

/** The sentences around the first of the words, with all of them marked. */
const snippet = (text, asked) => {
  const parts = text.split(/([\p{L}\p{N}]+)/u); // signs and words in turns
  const fits = (part, i) => i % 2 && asked.some((word) => folded(part.toLowerCase()).startsWith(word));
  const first = Math.max(0, parts.findIndex(fits));
  let start = Math.max(0, first - 24);
  for (let i = start; i < first; i++) if (/[.?!:]\s/.test(parts[i])) start = i + 1;
  const shown = parts.slice(start, start + 70);
  const line = make("p", { className: "context" }, start ? "… " : "");
  shown.forEach((part, i) => line.append(fits(part, start + i) ? make("mark", {}, part) : part));
  if (start + 70 < parts.length) line.append(" …");
  return line;
};

const search = async (query) => {
  const box = document.getElementById("search-results");
  const asked = [...new Set(wordsOf(query))];
  const said = make("p", { className: "search-summary", role: "status" });
  const list = make("ul", { className: "search" });
  box.replaceChildren(said, list);
  if (!asked.length) return;
  said.textContent = "Searching …";
  const [found, { places }] = [await rank(asked), await load("places")];
  said.textContent = found.length
    ? `${found.length} ${found.length > 1 ? "places" : "place"} found.`
    : "Nothing found. Every word has to be in one section: try fewer, or only their beginnings.";
  const titles = new Map(places.filter(([, anchor]) => !anchor).map(([page, , title]) => [page, title]));
  const show = async (some) => {
    for (const [i] of some) {
      const [page, anchor, title, kind, block] = places[i];
      const href = `${page}.html?highlight=${encodeURIComponent(asked.join(" "))}${anchor ? `#${anchor}` : ""}`;
      const item = make("li", { className: kind === TERM ? "attn-term" : "" }, make("a", { href }, title));
      if (anchor) item.append(make("small", {}, titles.get(page) ?? ""));
      list.append(item);
      load(`texts-${block}`).then((texts) => { if (texts[i]) item.append(snippet(texts[i], asked)); });
    }
  };
  await show(found.slice(0, FIRST));
  if (found.length > FIRST) {
    const more = make("button", { type: "button", className: "btn", textContent: "Show all" });
    more.onclick = () => { more.remove(); show(found.slice(FIRST)); };
    list.after(more);
  }
};

document.addEventListener("DOMContentLoaded", () => {
  const query = new URLSearchParams(location.search).get("q") ?? "";
  for (const field of document.querySelectorAll("input[name=q]")) field.value = query;
  search(query);
});
