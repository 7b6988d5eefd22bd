// How one score comes about: a query and a key, their products as bars, the sum, its divisor, and
// the softmax over this key and its rivals.
/** The row of a query: the scores, divided, and what a softmax makes of them. */
const scoreRow = (query, keys, by) => {
  const scores = keys.map(key => dot(query, key) * by);
  return {scores, weights: softmax(scores)};
};
/** Bars of a list of numbers, up and down from a line: a group, top at y. Few have their values, of many the named ones their numbers. */
const barRow = (numbers, role, y, high, named = []) => {
  const wide = 340, few = numbers.length <= 4, room = few || named.length ? 15 : 1, above = Math.max(0, ...numbers), below = Math.max(0, ...numbers.map(x => -x));
  const step = wide / numbers.length, thick = Math.min(.8 * step, 34), by = (high - room * (1 + (below > 0))) / (above + below || 1), line = y + room + above * by;
  return draw("g", {}, draw("path", {d: `M0,${line}H${wide}`, style: "stroke:var(--rim)"}), ...numbers.flatMap((x, i) => {
    const middle = step * (i + .5), tall = Math.abs(x) * by;
    return [draw("rect", {x: middle - thick / 2, y: x > 0 ? line - tall : line, width: thick, height: Math.max(tall, .5), style: `fill:var(--${role})`}, draw("title", {}, `${i}: ${short(x)}`)),
      ...few || named.includes(i) ? [draw("text", {x: Math.min(Math.max(middle, 9), wide - 9), y: x < 0 ? line + tall + 13 : line - tall - 3, "text-anchor": "middle", "font-size": 15}, few ? short(x) : i)] : []];
  }));
};
/** Fills a box with the score that a query gives to one of the keys, and returns what it shows. names: of the keys; by: what the sum is multiplied by, `divided` says it. */
const scoreSum = (box, {query, keys, names, chosen, by, divided}) => {
  const key = keys[chosen], products = query.map((x, c) => x * key[c]), sum = products.reduce((a, b) => a + b, 0), {scores, weights} = scoreRow(query, keys, by);
  const top = Math.max(...scores), order = [...keys.keys()].sort((a, b) => weights[b] - weights[a]), first = order.slice(0, 5);
  if (!first.includes(chosen)) first[4] = chosen;
  const others = order.filter(j => !first.includes(j)), total = list => list.reduce((all, j) => all + weights[j], 0);
  const many = products.length > 4, [most, least] = [Math.max(...products), Math.min(...products)].map(x => products.indexOf(x)), nth = i => `${short(products[i])} (number ${i})`;
  const row = (name, score, power, weight, own) => make("tr", {className: own ? "ss-own" : ""}, make("th", {scope: "row"}, name), make("td", {}, score), make("td", {}, power), make("td", {}, percent(weight)), make("td", {}, make("i", {style: `width:${100 * weight}%`})));
  const power = j => short(Math.exp(scores[j] - top));
  const line = (y, words) => draw("text", {x: 0, y, "font-size": 15}, words);
  const picture = draw("svg", {viewBox: "0 0 340 222", role: "img", "aria-label": `Query and key, number by number, and their ${products.length} products, which sum to ${shown(sum)}.`},
    line(12, "query"), barRow(query, "query", 20, 44), line(82, "key"), barRow(key, "key", 90, 44), line(152, "query × key, number by number"), barRow(products, "ink", 160, 60, many ? [most, least] : []));
  const rows = [...first.map(j => row(names[j], shown(scores[j]), power(j), weights[j], j === chosen)), ...others.length ? [row(`${others.length} more`, "", "", total(others))] : []];
  box.replaceChildren(picture, make("p", {className: "ss-sum"}, `${many ? `Largest product ${nth(most)}, least ${nth(least)}. ` : ""}Sum ${shown(sum)}, ${divided}: `, make("b", {}, shown(scores[chosen]))),
    make("table", {className: "ss-rivals"}, make("thead", {}, make("tr", {}, ...["key", "score", "exp", "weight", ""].map(text => make("th", {scope: "col"}, text)))), make("tbody", {}, ...rows)),
    make("p", {className: "ss-note"}, "exp of the score less the row’s largest"));
  return {products, sum, scores, weights, chosen};
};
