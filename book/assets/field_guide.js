// The field guide: a box to find entries by, a link to a folded one unfolds it. Paper shows what
// the screen does: unfolded, all of them are more than a thousand pages.

/** Makes elements of what an entry holds; until then it is text, which costs a page nothing. */
function wake(entry) {
  const body = entry.querySelector(":scope > .attn-body");
  if (!body) return;
  const text = body.textContent;
  body.remove();
  entry.insertAdjacentHTML("beforeend", text);
  const taught = entry.closest("section").querySelector(":scope > p a");
  if (!taught || !entry.matches(".attn-bug")) return;
  const again = document.createElement("p");
  again.className = "attn-screen";
  again.append("Read again: ", taught.cloneNode(true), ".");
  entry.append(again);
}

addEventListener("toggle", ({ target }) => target.matches?.("details") && wake(target), true);

function unfold() {
  const entry = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!(entry instanceof HTMLDetailsElement) || entry.open) return;
  wake(entry);
  entry.open = true;
  entry.scrollIntoView();
}

/** A box above the entries: those stay that hold every word typed, in name, code or explanation. */
function addFilter() {
  const symptoms = document.getElementById("guide-symptoms");
  if (!symptoms) return;
  const box = document.createElement("div");
  box.className = "attn-filter";
  box.innerHTML =
    '<label for="attn-filter">Find a mistake by words of its name, its code or its symptom</label>' +
    '<input id="attn-filter" type="search" autocomplete="off" spellcheck="false" ' +
    'aria-controls="field-guide"><p role="status"></p>';
  symptoms.before(box);
  const [input, status] = [box.querySelector("input"), box.querySelector("p")];
  const chapters = [...document.querySelectorAll("section[id^=guide-]")];
  let entries = [];

  /** Every entry with its words, read when the box is first used. */
  function read() {
    const tags = /<[^>]+>/g;
    const signs = { "&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&#x27;": "'" };
    entries = [...document.querySelectorAll(".attn-bug")].map((element) => {
      const function_ = element.closest("section").querySelector("h3").textContent;
      const said = element.textContent.replace(tags, "").replace(/&[#\w]+;/g, (sign) => signs[sign] ?? sign);
      return { element, text: `${function_} ${said}`.toLowerCase() };
    });
  }

  function filter() {
    if (!entries.length) read();
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { element, text } of entries) {
      element.hidden = !words.every((word) => text.includes(word));
      count += !element.hidden;
    }
    for (const chapter of chapters) {
      chapter.hidden = words.length > 0 && !chapter.querySelector(".attn-bug:not([hidden])");
    }
    status.textContent = words.length ? `${count} of ${entries.length} entries match.` : "";
  }

  input.addEventListener("input", filter);
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    input.value = "";
    filter();
  });
  addEventListener("hashchange", () => {
    const entry = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!entry?.closest("[hidden]")) return;
    input.value = ""; // a link leads to what was filtered away
    filter();
    entry.scrollIntoView();
  });
}

addEventListener("DOMContentLoaded", addFilter);
addEventListener("hashchange", unfold);
addEventListener("DOMContentLoaded", unfold);
