// Find the mistake: one drill after the other. Which line is wrong, then what happens there. What a
// reader has done stays in this browser, under one name, and says which drill comes next.

/** What is kept: when each drill was last answered, and how. Works without a place to keep it, too. */
const attncourseKept = (() => {
  const NAME = "attncourse-practice";
  const KIND = "attncourse practice"; // what a file of it says of itself
  const empty = () => ({ kind: KIND, version: 1, count: 0, without: [], drills: {} });
  let now = empty();
  let trouble = "";

  const whole = (n) => Number.isInteger(n) && n >= 0;
  const isRecord = (one) => one && [one.seen, one.row, one.turn, one.at].every(whole) && one.seen > 0;
  /** What a text holds; null where it is no record of this page. */
  const parsed = (text) => {
    let read;
    try { read = JSON.parse(text); } catch { return null; }
    if (read?.kind !== KIND || read.version !== 1 || !whole(read.count) || !Array.isArray(read.without)) return null;
    if (typeof read.drills !== "object" || !read.drills || !Object.values(read.drills).every(isRecord)) return null;
    return { ...empty(), count: read.count, without: read.without.map(String), drills: { ...read.drills } };
  };
  /** From storage, since another tab may have written there. */
  const read = () => {
    let text = null;
    try { text = localStorage.getItem(NAME); } catch { trouble = "forbidden"; }
    const there = text === null ? null : parsed(text);
    if (there && trouble !== "full") now = there;
    return now;
  };
  const write = () => {
    try {
      localStorage.setItem(NAME, JSON.stringify(now));
      trouble = "";
    } catch (error) {
      trouble = error?.name === "QuotaExceededError" ? "full" : "forbidden";
    }
  };
  const change = (how) => { read(); how(now); write(); };

  return {
    read,
    /** Why nothing is kept: "", "forbidden" or "full". */
    trouble: () => trouble,
    answered: (id, right, at = Date.now()) => change((kept) => {
      const { seen = 0, row = 0 } = kept.drills[id] ?? {};
      kept.count += 1;
      kept.drills[id] = { seen: seen + 1, row: right ? row + 1 : 0, turn: kept.count, at };
    }),
    leaveOut: (stems) => change((kept) => { kept.without = stems; }),
    forget: () => { now = empty(); write(); },
    text: () => JSON.stringify(read(), null, 1),
    /** Adds a file: of each drill the newer record stays. How many it brought, or -1 if it is none. */
    add: (text) => {
      const other = parsed(text);
      if (!other) return -1;
      let brought = 0;
      change((kept) => {
        const ahead = kept.count - other.count; // both count answers: the latest of either was just now
        for (const [id, record] of Object.entries(other.drills)) {
          if (record.at <= (kept.drills[id]?.at ?? -1)) continue;
          kept.drills[id] = { ...record, turn: Math.max(0, record.turn + Math.max(0, ahead)) };
          brought += 1;
        }
        kept.count = Math.max(kept.count, other.count);
      });
      return brought;
    },
  };
})();

/** When a drill comes again: after three others, a day, a week, a month. */
const attncourseTurns = (() => {
  const DAY = 24 * 60 * 60 * 1000;
  const OTHERS = 3;
  const WAITS = [DAY, 7 * DAY, 30 * DAY]; // right once, twice, three times in a row or more

  /** Milliseconds until it is due, 0 or less if it is; Infinity while too few others have come. */
  const wait = (record, count, at) => {
    if (!record.row) return count - record.turn >= OTHERS ? 0 : Infinity;
    if (at < record.at) return 0; // a clock was put back: rather now than never
    return WAITS[Math.min(record.row, WAITS.length) - 1] - (at - record.at);
  };
  const anyOf = (list) => list[Math.floor(Math.random() * list.length)];

  return {
    isDue: (record, kept, at = Date.now()) => wait(record, kept.count, at) <= 0,
    /** The next of some drills by their ids, not the one before: missed, due, new, else soonest due. */
    next: (ids, kept, last = "", at = Date.now()) => {
      const others = ids.length > 1 ? ids.filter((id) => id !== last) : ids;
      const seen = others.filter((id) => kept.drills[id]);
      const waits = new Map(seen.map((id) => [id, wait(kept.drills[id], kept.count, at)]));
      const due = seen.filter((id) => waits.get(id) <= 0);
      const oldest = (list) => list.reduce((a, b) => (kept.drills[b].at < kept.drills[a].at ? b : a));
      const missed = due.filter((id) => !kept.drills[id].row);
      if (missed.length) return oldest(missed);
      if (due.length) return oldest(due);
      const fresh = others.filter((id) => !kept.drills[id]);
      if (fresh.length) return anyOf(fresh);
      const finite = seen.filter((id) => waits.get(id) < Infinity);
      if (!finite.length) return oldest(seen);
      return finite.reduce((a, b) => (waits.get(b) < waits.get(a) ? b : a));
    },
  };
})();

/** The drills of a chapter, loaded once: a script, since a page opened from a folder loads no data. */
const attncourseLoad = (() => {
  const chapters = new Map(); // by stem, a promise and what fulfils it
  window.attncourseDrills = (stem, drills) => chapters.get(stem)?.give(drills);
  return (stem, address) => {
    if (!chapters.has(stem)) {
      const one = {};
      one.came = new Promise((give, refuse) => Object.assign(one, { give, refuse }));
      chapters.set(stem, one);
      const script = document.createElement("script");
      script.src = address;
      script.onerror = () => {
        chapters.delete(stem); // another try is another script
        one.refuse(new Error(address));
      };
      document.head.append(script);
    }
    return chapters.get(stem).came;
  };
})();

/** An element with attributes and, as markup or as elements, what is in it. */
function drillPart(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  for (const child of children) {
    if (typeof child === "string") node.insertAdjacentHTML("beforeend", child);
    else node.append(child);
  }
  return node;
}

/** One of several buttons is in the tab order; arrows, Home and End move between them. */
function rove(buttons) {
  buttons.forEach((button, at) => {
    button.tabIndex = at ? -1 : 0;
    button.onkeydown = (event) => {
      const last = buttons.length - 1;
      const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const target = buttons[Math.max(0, Math.min(last, to))];
      for (const other of buttons) other.tabIndex = other === target ? 0 : -1;
      target.focus();
    };
  });
}

/** Shows drills in a place of the page, one at a time. */
class AttncourseDrill {
  constructor(root, { another, done }) {
    Object.assign(this, { root, another, done });
    this.notice = drillPart("p", { class: "ap-notice", role: "status" });
    this.stage = drillPart("div", { class: "ap-stage" });
    root.prepend(this.notice, this.stage);
  }

  show(drill, notice = "") {
    Object.assign(this, { drill, lineRight: null, instead: null });
    const ask = drillPart("p", { class: "ap-ask", id: "drill-line" }, "Which line is wrong?");
    this.lines = drill.code.map((row, i) => this.line(row, i));
    this.verdict = drillPart("p", { class: "ap-verdict", id: "drill-name", role: "status" });
    this.then = drillPart("div", { class: "ap-then" });
    const columns = Math.max(...this.lines.map((line, i) => drill.code[i][0] + line.querySelector(".ap-text").textContent.length));
    const code = drillPart("pre", { role: "group", "aria-labelledby": ask.id }, ...this.lines);
    this.stage.replaceChildren(
      drillPart("p", { class: "ap-title" }, `<code>${drill.function}</code>: ${drill.asks}`),
      ask,
      drillPart(
        "div",
        { class: "ap-sides" },
        drillPart("div", { class: "ap-left", style: `--columns:${columns}` }, drillPart("div", { class: "highlight ap-code" }, code), this.verdict, this.then),
        drillPart("div", { class: "ap-example" }, drill.example),
      ),
      this.ways(),
    );
    Object.assign(this.root.dataset, { drill: drill.id, step: "line" });
    this.choices = this.lines.filter((line) => line.matches("button"));
    rove(this.choices);
    this.notice.textContent = notice;
    makeReachableSoon();
  }

  /** A line to choose; one that is empty or a comment is none. */
  line([indent, text], i) {
    const parts = [
      drillPart("span", { class: "ap-number" }, `<span class="ap-hidden">Line </span>${i + 1}`),
      drillPart("span", { class: "ap-text", style: `--in:${indent}` }, text || " "),
    ];
    const plain = parts[1].textContent.trim();
    if (!plain || plain.startsWith("#")) return drillPart("span", { class: "ap-line" }, ...parts);
    const button = drillPart("button", { type: "button", class: "ap-line" }, ...parts);
    button.onclick = () => this.chooseLine(i);
    return button;
  }

  chooseLine(chosen) {
    if (this.lineRight !== null) return;
    const { line, elsewhere = [] } = this.drill;
    this.instead = elsewhere.find(([first, last]) => first <= chosen && chosen <= last) ?? null;
    this.lineRight = chosen === line || this.instead !== null;
    this.lines.forEach((row, i) => {
      const still = drillPart("span", { class: "ap-line" }, ...row.childNodes);
      const mark = (name, sign, words) => {
        still.classList.add(name);
        still.append(drillPart("span", { class: "ap-mark" }, `<span aria-hidden="true">${sign}</span><span class="ap-hidden"> (${words})</span>`));
      };
      if (i === line) mark("ap-is", chosen === line ? "✓" : "←", "this is the wrong line");
      else if (i === chosen && this.instead) mark("ap-is", "✓", "you chose this line, which mends it as well");
      else if (i === chosen) mark("ap-not", "✗", "you chose this line");
      row.replaceWith(still);
    });
    if (!this.lineRight) this.record(false); // also if the reader goes on without a name
    const where = () => {
      if (chosen === line) return `Right, line ${line + 1}.`;
      if (!this.instead) return `Not line ${chosen + 1}: it is line ${line + 1}.`;
      return `Right: it can be mended in line ${chosen + 1}. What was changed is line ${line + 1}.`;
    };
    this.askName(where());
  }

  askName(where) {
    const { name, others } = this.drill;
    this.root.dataset.step = "name";
    this.verdict.textContent = `${where} What happens there?`;
    const all = [name, ...others].map((words) => ({ words, order: Math.random() })).sort((a, b) => a.order - b.order);
    const buttons = all.map(({ words }) => {
      const button = drillPart("button", { type: "button", class: "ap-option" }, words);
      button.onclick = () => this.chooseName(words);
      return button;
    });
    const group = drillPart("div", { class: "ap-options", role: "group", "aria-labelledby": "drill-name" }, ...buttons);
    this.then.replaceChildren(group);
    rove(buttons);
    buttons[0].focus({ preventScroll: true }); // its group is named by what came of the line
    this.bring(this.then);
  }

  chooseName(chosen) {
    const { drill } = this;
    const right = chosen === drill.name;
    if (this.lineRight) this.record(right);
    this.root.dataset.step = "done";
    const said = right ? "" : ` <span class="ap-said">(You said: ${chosen}.)</span>`;
    this.verdict.innerHTML = `<span class="${right ? "ap-yes" : "ap-no"}">${right ? "Right" : "Not right"}:</span> ${drill.name}.${said}`;
    const code = (title, rows) => {
      const least = Math.min(...rows.map(([indent]) => indent));
      const lines = rows.map(([indent, text]) =>
        drillPart("span", { class: "ap-line" }, drillPart("span", { class: "ap-text", style: `--in:${indent - least}` }, text)));
      return drillPart("div", {}, `<p>${title}</p>`, drillPart("div", { class: "highlight ap-code" }, drillPart("pre", {}, ...lines)));
    };
    const result = drillPart(
      "div",
      { class: "ap-result", tabindex: "-1", role: "group", "aria-labelledby": "drill-name" },
      `<p>${drill.says}</p>`,
      drillPart("div", { class: "ap-pair ap-lines" }, code(`Line ${drill.line + 1}`, [drill.code[drill.line]]), code("Mended", drill.mended)),
      ...(this.instead ? [this.mendedInstead(code)] : []),
      drill.links && `<p>Read again: ${drill.links}</p>`,
    );
    this.then.replaceChildren(result);
    result.focus({ preventScroll: true });
    this.bring(this.then);
    makeReachableSoon();
  }

  /** The statement that the reader chose, as it stands there and as it mends the drill as well. */
  mendedInstead(code) {
    const [first, last, rows] = this.instead;
    const title = last > first ? `Or lines ${first + 1} to ${last + 1}` : `Or line ${first + 1}`;
    const there = this.drill.code.slice(first, last + 1);
    return drillPart("div", { class: "ap-pair ap-lines" }, code(title, there), code("Mended there", rows));
  }

  /** Into sight, if it is not, as far as the screen has room. */
  bring(element) {
    const first = this.verdict.getBoundingClientRect().top - 70; // what the header covers
    const down = Math.min(element.getBoundingClientRect().bottom - innerHeight + 8, first);
    if (down > 0) scrollBy({ top: down, behavior: "instant" });
  }

  record(right) {
    attncourseKept.answered(this.drill.id, right);
    this.done();
  }

  /** Below a drill: another one, and its address. */
  ways() {
    const next = drillPart("button", { type: "button", class: "ap-next" }, "Another one");
    const said = drillPart("span", { role: "status" });
    next.onclick = async () => {
      await this.another();
      this.choices[0].focus({ preventScroll: true });
      if (this.root.getBoundingClientRect().top < 0) this.root.scrollIntoView({ block: "start", behavior: "instant" });
    };
    const row = drillPart("div", { class: "ap-row" }, next);
    const { practice } = this.root.dataset; // the page that has an address for each drill
    if (practice === "") return row;
    const link = drillPart("button", { type: "button" }, "Copy link");
    link.onclick = async () => {
      const address = new URL(`${practice ?? ""}#${this.drill.id}`, location.href).href;
      const copied = await navigator.clipboard?.writeText(address).then(() => true, () => false);
      said.textContent = copied ? "The link is copied." : `Its address: ${address}`;
    };
    row.append(link, said);
    return row;
  }
}

/** What to say where nothing can be kept. */
const attncourseTrouble = () =>
  ({
    forbidden: "This browser keeps nothing for these pages: what you do here counts until you leave.",
    full: "The browser's storage is full: what you do here counts until you leave.",
  })[attncourseKept.trouble()] ?? "";

/** A chapter's drills, once a reader comes near. */
function startChapterDrills(root) {
  const { chapter, drills: address, practice } = root.dataset;
  root.dataset.moves = "";
  let all = [];
  const stand = document.createElement("p");
  stand.className = "ap-stand";
  const standing = () => {
    const { drills } = attncourseKept.read();
    const seen = all.filter(({ id }) => drills[id]);
    const right = seen.filter(({ id }) => drills[id].row);
    const more = practice ? ` <a href="${practice}#${chapter}">Practice</a> has those of all chapters.` : "";
    stand.innerHTML = `${seen.length} of this chapter's ${all.length} seen, ${right.length} right at the last try.${more} ${attncourseTrouble()}`;
  };
  const start = async () => {
    try {
      all = await attncourseLoad(chapter, address);
    } catch {
      delete root.dataset.moves; // the three that stand there show
      return;
    }
    const view = new AttncourseDrill(root, {
      another: () => {
        const id = attncourseTurns.next(all.map((one) => one.id), attncourseKept.read(), view.drill?.id);
        view.show(all.find((one) => one.id === id));
      },
      done: standing,
    });
    view.stage.after(stand);
    view.another();
    standing();
  };
  const watch = new IntersectionObserver(
    (seen) => {
      if (!seen.some((one) => one.isIntersecting)) return;
      watch.disconnect();
      start();
    },
    { rootMargin: "800px" },
  );
  watch.observe(root);
}

document.addEventListener("DOMContentLoaded", () => {
  for (const root of document.querySelectorAll(".attncourse-drill[data-chapter]")) startChapterDrills(root);
});
