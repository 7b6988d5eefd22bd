const part = partsOf(root), {sequences, fraction} = data, n = sequences.length;
/** Levenshtein's distance. */
const edits = (a, b) => {
  let row = [...Array(b.length + 1).keys()];
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) next.push(Math.min(row[j + 1] + 1, next[j] + 1, row[j] + (a[i] !== b[j])));
    row = next;
  }
  return row[b.length];
};
/** Clusters by single linkage, numbered in order, both splits by the order of the keys, and who of a test side has a near-copy in train. */
root.compute = ({sequences, distance, keys, fraction}) => {
  const n = sequences.length, near = sequences.map(a => sequences.map(b => edits(a, b) <= distance));
  const clusters = Array(n).fill(-1);
  let count = 0;
  const join = (i, k) => { clusters[i] = k; near[i].forEach((is, j) => { if (is && clusters[j] < 0) join(j, k); }); };
  for (let i = 0; i < n; i++) if (clusters[i] < 0) join(i, count++);
  const order = [...keys.keys()].sort((i, j) => keys[i] - keys[j]), wanted = fraction * n;
  const held = Math.round(wanted), random = keys.map((_, i) => order.indexOf(i) < held), similar = Array(n).fill(false);
  let filled = 0;
  for (const k of new Set(order.map(i => clusters[i]))) {
    const size = clusters.filter(c => c === k).length, missing = wanted - filled;
    if (Math.abs(missing - size) < missing) { filled += size; clusters.forEach((c, i) => { if (c === k) similar[i] = true; }); }
  }
  const leaks = test => test.map((is, i) => is && near[i].some((close, j) => close && !test[j]));
  return {clusters, count, random, similar, leaks: leaks(random), similarLeaks: leaks(similar)};
};
const lines = [...part("rows").tBodies[0].rows];
let keys = data.keys;
const show = () => {
  const distance = +part("distance").value, now = root.now = root.compute({sequences, distance, keys, fraction});
  const {clusters, count, random, similar, leaks, similarLeaks} = now, mark = (test, leak) => leak ? "test: twin" : test ? "test" : "train";
  lines.forEach((line, i) => {
    line.classList.toggle("fs-first", i > 0 && clusters[i] !== clusters[i - 1]);
    [clusters[i] + 1, mark(random[i], leaks[i]), mark(similar[i], similarLeaks[i])].forEach((words, k) => line.cells[k + 1].textContent = words);
    [[random, leaks], [similar, similarLeaks]].forEach(([test, leak], k) => line.cells[k + 2].className = leak[i] ? "fs-leak" : test[i] ? "fs-test" : "");
  });
  part("distance-now").value = distance;
  const much = list => list.filter(Boolean).length, tested = much(similar);
  tell(root, `At a distance of ${distance} there are ${count} clusters. Of ${much(random)} sequences tested at random ${much(leaks)} have a near-copy in train. `
    + (tested ? `By similarity ${tested} are tested, and ${much(similarLeaks)} have one.` : "No cluster is small enough for the test side of a split by similarity."));
};
part("distance").oninput = show;
part("again").onclick = () => { keys = sequences.map(() => Math.random()); show(); };
show();
