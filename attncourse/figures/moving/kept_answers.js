const part = partsOf(root), {answers} = data;
let chosen = data.chosen, written = 1, asked = 0;
/** How much of the probability the five likeliest words have, and where the written one stands among them. */
root.compute = ({chances, piece}) => ({
  together: chances.reduce((sum, [, p]) => sum + p, 0),
  place: chances.findIndex(([word]) => word === piece),
});
const ground = p => `background:color-mix(in srgb,var(--query) ${Math.round(p * 45)}%,transparent)`;
const visible = piece => piece.replaceAll("\n", "↵").replace(/^ /, "␣") || "∅";
const show = () => {
  const one = answers[chosen], n = one.pieces.length;
  part("asked").textContent = one.question;
  part("answer").replaceChildren(...one.pieces.slice(0, written).map((piece, i) => make("button",
    {type: "button", textContent: piece, style: ground(one.written[i]), ariaPressed: String(i === asked), onclick: () => { asked = i; show(); }})));
  part("next").disabled = part("all").disabled = written >= n;
  const chances = one.chances[asked], piece = one.pieces[asked], now = root.now = root.compute({chances, piece});
  part("rivals").replaceChildren(make("tbody", {}, ...chances.map(([word, p]) => make("tr", {className: word === piece ? "ka-taken" : ""},
    make("th", {scope: "row", textContent: visible(word)}),
    make("td", {className: "ka-bar"}, make("b", {style: `width:${100 * p}%`})),
    make("td", {textContent: `${shown(100 * p, p < .1 ? 1 : 0)} %`})))));
  tell(root, `“${visible(piece)}” had ${shown(100 * one.written[asked], 1)} %; these ${chances.length} together ${shown(100 * now.together, 0)} %.`
    + (written < n ? "" : " That is all that was kept."));
};
part("question").onchange = event => { chosen = +event.target.value; written = 1; asked = 0; show(); };
part("next").onclick = () => { written = Math.min(written + 1, answers[chosen].pieces.length); asked = written - 1; show(); };
part("all").onclick = () => { written = answers[chosen].pieces.length; asked = written - 1; show(); };
part("again").onclick = () => { written = 1; asked = 0; show(); };
show();
