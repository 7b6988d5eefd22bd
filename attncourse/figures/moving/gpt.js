// A GPT in the page: its blocks are those of transformer.js. It reads like attncourse.gpt.
W["out.weight"] ??= W["tokens.weight"]; // tied
/** Logits for the token after each of ids, (n, n_vocab), and every head's map; on[layer][head]. */
root.compute = ({ids, on}) => {
  const mask = ids.map((_, i) => ids.map((_, j) => j <= i));
  const {x, maps} = stack(plus(ids.map(id => W["tokens.weight"][id]), W["positions.table"]), on, mask);
  return {logits: linear(layerNorm(x, "norm"), "out"), maps};
};
