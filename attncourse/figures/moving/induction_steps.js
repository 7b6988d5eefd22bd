const part = partsOf(root), table = root.querySelector(".am-stage table");
/** Even weights of the token that asks on what came behind its like, and the shares of what stands there. */
root.compute = ({tokens, asks}) => {
  const match = tokens.map((_, j) => j > 0 && j <= asks && tokens[j - 1] === tokens[asks]), count = match.filter(Boolean).length || 1;
  const weights = match.map(m => m / count), words = [...new Set(tokens)];
  return {weights, words, shares: words.map(word => weights.reduce((sum, w, j) => sum + (tokens[j] === word ? w : 0), 0))};
};
let {tokens, asks} = data, step = 2;
const cell = (role, strength, text) => { const td = make("td", {textContent: text}); td.style.background = `color-mix(in srgb,var(--${role}) ${45 * strength}%,transparent)`; return td; };
const show = focus => {
  const {weights, words, shares} = root.now = root.compute({tokens, asks});
  const heads = tokens.map((token, i) => {
    const button = make("button", {type: "button", textContent: token, "aria-pressed": String(i === asks), onclick: () => { asks = i; show(i); }});
    button.onkeydown = event => {
      const to = i + ({ArrowRight: 1, ArrowLeft: -1}[event.key] ?? NaN);
      if (tokens[to]) { event.preventDefault(); asks = to; show(to); }
    };
    return make("th", {scope: "col"}, button);
  });
  const line = (name, from, cells) => make("tr", {}, make("th", {scope: "row", textContent: name}), ...tokens.map((t, i) => step < from ? make("td") : cells(t, i)));
  table.replaceChildren(make("thead", {}, make("tr", {}, make("td"), ...heads)), make("tbody", {},
    line("note", 0, (_, i) => cell("value", 0, i ? `after ${tokens[i - 1]}` : "–")),
    line("weight", 1, (_, i) => cell("key", weights[i], shown(weights[i]))),
    line("copies", 2, (t, i) => cell("value", weights[i], weights[i] ? t : ""))));
  if (focus >= 0) heads[focus].firstChild.focus();
  const top = shares.indexOf(Math.max(...shares)), me = `“${tokens[asks]}”`;
  tell(root, step === 0 ? "Layer 0: each token notes who stood before it."
    : !shares[top] ? `${me} has not come before: there is nothing to copy.`
    : step === 1 ? `Layer 1: ${me} looks where the note says “after ${tokens[asks]}”.`
    : `After ${me} comes “${words[top]}”, with a share of ${shown(shares[top])}.`);
};
part("words").oninput = () => {
  const words = part("words").value.split(/\s+/).filter(Boolean);
  if (words.length < 2 || words.length > 12 || words.some(word => word.length > 8)) return tell(root, "Please type 2 to 12 words of at most 8 letters, with spaces between them.");
  tokens = words;
  asks = words.length - 1;
  show();
};
pick(root, "step", i => { step = i; show(); });
show();
