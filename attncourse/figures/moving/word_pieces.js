const part = partsOf(root), ranks = new Map(data.merges.split("\n").map((pair, rank) => [pair, rank]));
/** A visible character for each byte, as models of this family have them. */
const visible = b => b > 32 && b < 127 || b > 160 && b < 173 || b > 173, signs = [];
for (let b = 0, next = 256; b < 256; b++) signs.push(String.fromCharCode(visible(b) ? b : next++));
/** The symbols of a word's bytes, and what they are after each merge. */
root.compute = ({word}) => {
  const rows = [[...new TextEncoder().encode(word)].map(b => signs[b])];
  for (;;) {
    const last = rows.at(-1);
    let best = "", lowest = Infinity;
    for (let i = 0; i + 1 < last.length; i++) {
      const pair = `${last[i]} ${last[i + 1]}`, rank = ranks.get(pair);
      if (rank < lowest) { lowest = rank; best = pair; }
    }
    if (!best) return {rows};
    const next = [];
    for (let i = 0; i < last.length; i++)
      if (`${last[i]} ${last[i + 1]}` === best) next.push(last[i] + last[++i]); else next.push(last[i]);
    rows.push(next);
  }
};
const seen = text => text.replaceAll("Ġ", "␣"), plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const field = part("word");
field.oninput = () => {
  const word = field.value, bytes = new TextEncoder().encode(word).length;
  field.ariaInvalid = String(!bytes || bytes > data.longest);
  if (!bytes) return tell(root, "Type a word; a space before it belongs to it.");
  if (bytes > data.longest) return tell(root, `That is ${bytes} bytes: at most ${data.longest}, please.`);
  const {rows} = root.now = root.compute({word});
  part("tree").replaceChildren(...rows.map((row, k) => make("div", {className: "wp-row"}, ...row.map(symbol => {
    const fresh = k && !rows[k - 1].includes(symbol);
    return make("span", {className: fresh ? "wp-new" : "", textContent: seen(symbol), style: `flex-grow:${symbol.length}`});
  }))));
  tell(root, `${plural(rows.length - 1, "merge")}, ${plural(rows.at(-1).length, "piece")}: ${seen(rows.at(-1).join(" + "))}.`);
};
field.oninput();
