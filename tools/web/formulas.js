/* Draws formulas with MathJax, for tools/formulas.py: a line of JSON in, a line of JSON out.

   In: [[TeX, whether it stands alone], …]. Out: {drawn: [{markup}, or {wrong: why}, …],
   glyphs: {id: path}, of all so far}. The first argument is MathJax's folder, the second its macros. */
const [, , folder, macros] = process.argv;
const readline = require("node:readline");

globalThis.MathJax = {
  loader: {
    load: ["adaptors/liteDOM", "input/tex-full", "output/svg", "a11y/assistive-mml", "[tex]/html"],
    paths: { mathjax: folder },
    versionWarnings: false,
    require,
  },
  tex: {
    packages: { "[+]": ["html"], "[-]": ["noerrors", "noundefined"] },
    macros: JSON.parse(macros),
    formatError: (_, error) => {
      throw error;
    },
  },
  svg: { fontCache: "global" },
  startup: { typeset: false },
};
require(`${folder}/startup.js`);

/* What neither a browser nor a screen reader needs of the markup. */
const lean = (markup) =>
  markup
    .replace(/ (data-c|data-mml-node|data-mjx-texclass|xmlns|xmlns:xlink|focusable|role|jax)="[^"]*"/g, "")
    .replace(/<g>(<use [^>]*><\/use>)<\/g>/g, "$1")
    .replaceAll("xlink:href", "href")
    .replaceAll("MJX-TEX-", "glyph-")
    .replaceAll(' class=" ', ' class="')
    .replace(' class="MathJax"', "")
    .replace(' style="position: relative;"', "");

MathJax.startup.promise.then(() => {
  const { adaptor, document } = MathJax.startup;
  const cache = document.outputJax.fontCache;
  const known = new Map();
  const draw = ([tex, display]) => {
    const key = JSON.stringify([tex, display]);
    if (!known.has(key)) {
      try {
        known.set(key, { markup: lean(adaptor.outerHTML(MathJax.tex2svg(tex, { display }))) });
      } catch (error) {
        known.set(key, { wrong: error.message });
      }
    }
    return known.get(key);
  };
  readline.createInterface({ input: process.stdin }).on("line", (line) => {
    const drawn = JSON.parse(line).map(draw);
    const glyphs = {};
    for (const path of adaptor.tags(cache.getCache(), "path")) {
      glyphs[adaptor.getAttribute(path, "id").replace("MJX-TEX-", "glyph-")] = adaptor.getAttribute(path, "d");
    }
    console.log(JSON.stringify({ drawn, glyphs }));
  });
});
