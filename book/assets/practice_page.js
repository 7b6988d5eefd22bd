// The page Practice: drills of the chapters that a reader chooses, an address for each drill, how one
// stands, and the record as a file. practice.js shows the drills and keeps the record.

function startPractice(root) {
  const chapters = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const stems = Object.keys(chapters);
  root.dataset.moves = "";
  const idsOf = (stem) => chapters[stem].ids.map((id) => `${stem}-${id}`);
  const stemOf = (id) => stems.find((stem) => id.startsWith(`${stem}-`));
  let only = ""; // the chapter that the address names, for this visit
  const chosen = () => {
    const { without } = attncourseKept.read();
    return only ? [only] : stems.filter((stem) => !without.includes(stem));
  };

  const view = new AttncourseDrill(root, { another: () => another(), done: () => stand() });
  const table = drillPart("tbody");
  const summary = drillPart("summary");
  const trouble = drillPart("p", { class: "ap-trouble" });
  const said = drillPart("p", { class: "ap-said-of-record", role: "status" });

  /** How one stands, by chapter; also which chapters are chosen. */
  function stand() {
    const kept = attncourseKept.read();
    const now = chosen();
    const sums = { seen: 0, all: 0, due: 0 };
    for (const row of table.children) {
      const { stem } = row.dataset;
      const records = idsOf(stem).map((id) => kept.drills[id]).filter(Boolean);
      const due = records.filter((one) => attncourseTurns.isDue(one, kept)).length;
      const right = records.filter((one) => one.row).length;
      const cells = [`${records.length} of ${chapters[stem].ids.length}`, right, due];
      cells.forEach((text, i) => { row.cells[i + 1].textContent = text; });
      row.querySelector("input").checked = now.includes(stem);
      if (!now.includes(stem)) continue;
      sums.seen += records.length;
      sums.all += chapters[stem].ids.length;
      sums.due += due;
    }
    const which = now.length === 1 ? `Chapter ${chapters[now[0]].number}` : `${now.length === stems.length ? "All" : now.length} chapters`;
    summary.textContent = `${which}: ${sums.seen} of ${sums.all} drills seen, ${sums.due} due`;
    trouble.textContent = attncourseTrouble();
  }

  /** A drill by its id; what is said before it. */
  async function show(id, notice = "") {
    const stem = stemOf(id);
    try {
      const drills = await attncourseLoad(stem, chapters[stem].drills);
      view.show(drills.find((one) => one.id === id), notice);
    } catch {
      view.notice.textContent = `The drills of chapter ${chapters[stem].number} could not be loaded.`;
    }
    stand();
  }

  async function another(notice = "", from = chosen()) {
    if (!from.length) {
      view.notice.textContent = "Choose a chapter.";
      return;
    }
    await show(attncourseTurns.next(from.flatMap(idsOf), attncourseKept.read(), view.drill?.id), notice);
  }

  /** What the address names: a chapter, a drill, a place of the page, or nothing that there is. */
  async function go() {
    const name = placeNamed();
    const stem = stemOf(name);
    if (chapters[name]) only = name;
    if (stem && idsOf(stem).includes(name)) return show(name);
    if (!name || chapters[name]) return another();
    if (document.getElementById(name)) return view.drill ? undefined : another();
    return another("No drill has this address, or none has it any more. Here is another one.", stem ? [stem] : chosen());
  }

  function row(stem) {
    const box = drillPart("input", { type: "checkbox" });
    box.onchange = () => {
      const now = new Set(chosen());
      if (box.checked) now.add(stem);
      else now.delete(stem);
      choose(stems.filter((one) => !now.has(one)));
    };
    const label = drillPart("label", {}, box, ` ${chapters[stem].number}. `);
    label.append(chapters[stem].title);
    const made = drillPart("tr", {}, drillPart("th", { scope: "row" }, label), "<td></td><td></td><td></td>");
    made.dataset.stem = stem;
    return made;
  }

  function choose(without) {
    only = "";
    attncourseKept.leaveOut(without);
    stand();
    const fits = view.drill && chosen().includes(stemOf(view.drill.id));
    if (!fits) another();
    else view.notice.textContent = "";
  }

  const button = (words, then) => {
    const made = drillPart("button", { type: "button" }, words);
    made.onclick = then;
    return made;
  };

  /** The record as a file, from a file, and forgotten. */
  function ofRecord() {
    const file = drillPart("input", { type: "file", accept: ".json,application/json", hidden: "", "aria-label": "A saved record" });
    file.onchange = async () => {
      const brought = attncourseKept.add(await file.files[0].text().catch(() => ""));
      file.value = "";
      said.textContent =
        brought < 0
          ? "This file is no record that this page has saved: nothing was changed."
          : `${brought} drills were taken over; of the others what stands here is as new.`;
      stand();
    };
    const save = () => {
      const address = URL.createObjectURL(new Blob([attncourseKept.text()], { type: "application/json" }));
      drillPart("a", { href: address, download: "attncourse-practice.json" }).click();
      setTimeout(() => URL.revokeObjectURL(address), 10_000);
    };
    const forget = () => {
      const before = attncourseKept.text();
      attncourseKept.forget();
      said.replaceChildren("All is forgotten. ", button("Undo", () => {
        attncourseKept.add(before);
        attncourseKept.leaveOut(JSON.parse(before).without);
        said.textContent = "It is as it was.";
        stand();
      }));
      stand();
    };
    return drillPart(
      "div",
      { class: "ap-row" },
      "<span>Your record:</span>",
      button("Save as a file", save),
      button("Add a file", () => file.click()),
      file,
      button("Forget all", forget),
    );
  }

  const head = "<thead><tr><th>Chapter</th><th>seen</th><th>right</th><th>due</th></tr></thead>";
  table.append(...stems.map(row));
  view.stage.before(
    drillPart(
      "details",
      { class: "ap-choose" },
      summary,
      drillPart("div", { class: "ap-row" }, button("All", () => choose([])), button("None", () => choose(stems))),
      drillPart("div", { class: "ap-wide" }, drillPart("table", {}, head, table)),
    ),
  );
  view.stage.after(ofRecord(), said, trouble);
  addEventListener("hashchange", go);
  addEventListener("storage", stand); // another tab has gone on
  go();
}

document.addEventListener("DOMContentLoaded", () => {
  for (const root of document.querySelectorAll(".attncourse-drill[data-chapters]")) startPractice(root);
});
