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
  const LAST = "word"; // of the live model's pieces the last is chosen, where nothing else is said
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
    say(figure, "Load the model: then it is set as the words or the address say.");
    figure.querySelector("[data-part=load]")?.focus({ preventScroll: true });
    new MutationObserver((_, watch) => { watch.disconnect(); done(); }).observe(loading, { attributeFilter: ["hidden"] });
  });

  let turn = 0;
  const set = async (figure, steps) => {
    const mine = ++turn;
    figure.scrollIntoView({ block: "nearest" });
    await loaded(figure);
    await figure.ready; // what it fetches once it is seen
    while (figure.still && !figure.still()) await pause(50);
    for (const one of steps) {
      if (mine !== turn) return; // somebody wants something else by now
      if (!(await step(figure, one))) {
        say(figure, "That setting is of another edition of this page: the figure stands as it is.");
        return;
      }
    }
  };

  /** A figure by its name, and the steps. */
  const read = (address) => {
    const plain = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
    const [name, ...steps] = address.split("&").map(plain);
    return [[...document.querySelectorAll(FIGURES)].find((one) => nameOf(one) === name), steps];
  };

  /** The address of what a figure shows now. */
  const addressOf = (figure) => {
    const before = first.get(figure), now = [...all(figure)], count = parts(figure, LAST).length;
    const moved = now.some(([name, value]) => name !== LAST && value !== before.get(name));
    const differs = ([name, value]) => {
      if (name !== LAST) return value !== before.get(name);
      return figure.still ? value !== (count > 1 ? String(count - 1) : "true") : moved || value !== before.get(name); // another sentence begins elsewhere
    };
    const steps = now.filter(differs).map(([name, value]) => `${name}=${value}`);
    const { way } = figure.now ?? {};
    const together = +figure.querySelector("[data-part=first]")?.value; // the first of an order, by a slider
    if (way?.off) { // the live model's heads and edges, one after the other, before the order that is shown
      const extra = [...(together ? [] : way.off).map((head) => [`rank=${head + 1}`, "head!"]), ...way.cuts.map(([head, , key]) => [`rank=${head + 1}`, `key=${key}`, "cut!"])].flat();
      const at = steps.findIndex((one) => /^(order|rank|key)=/.test(one));
      if (extra.length) steps.splice(at < 0 ? steps.length : at, 0, "order=layer", ...extra, `order=${figure.querySelector("[data-part=order]").value}`);
    }
    return `#set=${[nameOf(figure), ...steps].map((one) => encodeURIComponent(one).replace(/%3D/, "=").replace(/%20/g, "+")).join("&")}`.replaceAll("+", "%20");
  };

  const offerLinks = (figure) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "attn-copy-link", textContent: "Link", title: "Copies an address of the figure as it is set now" });
    button.onclick = async () => {
      history.replaceState(null, "", addressOf(figure));
      const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
      button.title = copied ? "Copied" : "It stands in the address bar";
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
