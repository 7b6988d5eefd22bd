// Words in the text set the figure that they speak of, and a figure's setting has an address.
// A setting is a list of steps: a control by its name gets a value, key=3, or is pressed, cut!.
// "#set=real_model&key=3&cut!" is such an address; tools/steps.py writes the same into the page.
// What a figure holds besides its controls, a painted mask, it says and takes as text: state=10.11.

{
  const FIGURES = ".attncourse-moving[data-moves], .attncourse-slider[data-moves], .attncourse-view[data-ready]";
  const CLOSED = "details:not([open]) *"; // what is folded is not set
  const SAYS = ".am-say, .av-say, .as-says";
  const first = new Map(); // what each control said when the page came, and the state
  const parts = (figure, name) => [...figure.querySelectorAll(`[data-part="${CSS.escape(name)}"]:not(.am-first *)`)];
  /** A figure goes by its name, or by its title. */
  const nameOf = (figure) => figure.dataset.figure ?? figure.ariaLabel.toLowerCase().match(/[\p{L}\d]+/gu).join("-");
  const say = (figure, text) => { figure.querySelector(SAYS).textContent = text; };
  const pause = (time) => new Promise((done) => { setTimeout(done, time); });

  /** What a control of a name says: a value, or which button of a group is down; null for others. */
  const said = (nodes) => {
    if (nodes.every((one) => one.matches("button[aria-pressed]"))) {
      const down = nodes.findIndex((one) => one.ariaPressed === "true");
      if (nodes.length > 1) return down < 0 ? null : String(down);
      return nodes[0].ariaPressed;
    }
    return nodes.length === 1 && nodes[0].matches("select, textarea, input:not([type=file])") ? nodes[0].value : null;
  };
  const LAST = "word"; // of a sentence's words, the one that is chosen
  const all = (figure) => {
    const names = new Set([...figure.querySelectorAll(`[data-part]:not(.am-first *, ${CLOSED})`)].map((one) => one.dataset.part));
    const controls = [...names].map((name) => [name, said(parts(figure, name))]);
    return new Map([["state", figure.state?.() ?? null], ...controls].filter(([, value]) => value !== null));
  };

  /** Takes one step; false where the figure has no such control, or it no such value. */
  const step = async (figure, text) => {
    if (text.startsWith("state=")) return figure.restore?.(text.slice(6)) ?? false;
    const press = text.endsWith("!");
    const [, name, value] = press ? [0, text.slice(0, -1)] : text.match(/^([^=]+)=(.*)$/s) ?? [];
    const nodes = name ? parts(figure, name) : [];
    if (!nodes.length) return false;
    nodes[0].closest("details")?.setAttribute("open", "");
    if (press) nodes[0].click();
    else if (nodes[0].matches("button")) {
      const button = nodes.length > 1 ? nodes[value] : nodes[0];
      if (!button) return false;
      if (said(nodes) !== value) button.click();
    } else {
      nodes[0].value = value;
      if (nodes[0].value !== value) return false;
      for (const kind of ["input", "change"]) nodes[0].dispatchEvent(new Event(kind, { bubbles: true }));
    }
    if (figure.still) { // a model that computes, and begins a little after the last letter
      await pause(name === "text" ? 350 : 0);
      while (!figure.still()) await pause(50);
    }
    return true;
  };

  /** Until a figure that has to be loaded is there. */
  const loaded = (figure) => new Promise((done) => {
    const loading = figure.querySelector("[data-part=loading]");
    if (!loading || loading.hidden) return done();
    figure.querySelector("[data-part=load]").focus({ preventScroll: true });
    figure.waits();
    new MutationObserver((_, watch) => { watch.disconnect(); done(); }).observe(loading, { attributeFilter: ["hidden"] });
  });

  let turn = 0;
  const set = async (figure, steps) => {
    const mine = ++turn, wrong = () => say(figure, "That setting is of another edition of this page: the figure stands as it is.");
    if (!figure.take) figure.scrollIntoView({ block: "nearest" });
    await loaded(figure);
    await figure.ready; // what it fetches once it is seen
    let rest = steps;
    if (mine !== turn) return; // somebody wants something else by now
    if (figure.take) { // all at once, from a clean state; what is left is pressed
      rest = await figure.take(steps);
      if (!rest) return wrong();
      const [name] = rest[0]?.match(/[^=!]+/) ?? [];
      if (name) parts(figure, name)[0].scrollIntoView({ block: "center" }); // its progress stands there
    }
    for (const one of rest) {
      if (mine !== turn) return;
      if (!(await step(figure, one))) return wrong();
    }
  };

  /** A figure by its name, and the steps. */
  const read = (address) => {
    const plain = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
    const [name, ...steps] = address.split("&").map(plain);
    return [[...document.querySelectorAll(FIGURES)].find((one) => nameOf(one) === name), steps];
  };

  /** The address of what a figure shows now; the real model says its steps itself. */
  const addressOf = (figure) => {
    const steps = figure.steps?.() ?? stepsOf(figure);
    return `#set=${[nameOf(figure), ...steps].map((one) => encodeURIComponent(one).replace(/%3D/, "=")).join("&")}`;
  };
  /** The steps from what a figure showed first to what it shows now. */
  const stepsOf = (figure) => {
    const before = first.get(figure), now = [...all(figure)];
    const moved = now.some(([name, value]) => name !== LAST && value !== before.get(name));
    const differs = ([name, value]) => (name === LAST && moved) || value !== before.get(name); // another sentence begins elsewhere
    return now.filter(differs).map(([name, value]) => `${name}=${value}`);
  };

  const offerLinks = (figure) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "attn-copy-link", textContent: "Link", title: "Copies an address of the figure as it is set now" });
    button.onclick = async () => {
      history.replaceState(null, "", addressOf(figure));
      const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
      button.title = copied ? "Copied" : "It stands in the address bar";
      button.textContent = copied ? "Link copied ✓" : "Link: in the address bar ✓"; // the message may be out of sight
      setTimeout(() => { button.textContent = "Link"; }, 4000);
      say(figure, copied ? "The link is copied, and in the address bar." : "The link is in the address bar.");
    };
    figure.querySelector(".am-title, .av-title, .as-read").append(button);
  };

  const go = () => {
    if (!location.hash.startsWith("#set=")) return;
    const [figure, steps] = read(location.hash.slice(5));
    if (figure) set(figure, steps);
  };

  addEventListener("load", () => {
    const seen = new Set(); // an address names the first of a kind
    for (const figure of document.querySelectorAll(FIGURES)) {
      first.set(figure, all(figure));
      if (!seen.has(nameOf(figure))) offerLinks(figure);
      seen.add(nameOf(figure));
    }
    for (const word of document.querySelectorAll(".attn-do")) {
      const [figure, steps] = read(word.dataset.do);
      if (!figure) continue;
      word.classList.add("attn-can");
      word.onclick = () => set(figure, steps);
    }
    go();
  });
  addEventListener("hashchange", go);
}
