// The queries in one column, the keys in another, and straight lines between them.
const tall = Math.max(m, n);
const ends = (tokens, className, position) => tokens.map((token, x) => make("span", {className, onmouseover: () => show(position(x))}, bdi(token)));
const left = ends(queries, "av-q", i => [i, -1]), right = ends(keys, "av-k", j => [-1, j]);
svg.setAttribute("viewBox", `0 0 1 ${tall}`);
svg.setAttribute("preserveAspectRatio", "none");
svg.style.height = 1.5 * tall + "rem";
const fan = make("div", {className: "av-fan"}, make("div", {}, ...left), svg, make("div", {}, ...right));
const title = make("div", {className: "av-ends"}, make("span", {className: "av-q"}, "queries"), make("span", {className: "av-k"}, "keys"));
(folded || box).after(make("div", {className: "av-lines", ariaHidden: "true", onmouseleave: leave}, title, fan));
return {
  what: "map",
  wide: 5,
  path: (i, j) => `M0,${i + (tall - m + 1) / 2}L1,${j + (tall - n + 1) / 2}`,
  mark(position) {
    const [i, j] = position || [];
    for (const node of [left[i], right[j]]) node?.classList.add("av-on");
  },
};
