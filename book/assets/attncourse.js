// What the pages do beyond the theme: quizzes keep count, and whatever scrolls can be reached by key.

const SCROLLS = [
  "mjx-container[display]",
  "div.math",
  "pre",
  ".output",
  ".attn-pair",
  ".attn-strip",
  ".ap-pair",
  ".ap-wide",
  ".pst-scrollable-table-container",
].map((what) => `.bd-article ${what}`).join(", ");

/** On which sides there is more. */
function sides(element) {
  const left = element.scrollLeft;
  const right = element.scrollWidth - element.clientWidth - left;
  return `${left > 1 ? "left" : ""} ${right > 1 ? "right" : ""}`.trim();
}

/** Says so, for the style sheet to fade those edges. */
function fade({ target }) {
  target.dataset.more = sides(target);
}

/** Lets the keyboard into what is wider than its place, and into nothing else. */
function makeReachable() {
  // All are measured before one is changed: the browser would lay out the page for each.
  const measured = [...document.querySelectorAll(SCROLLS)].map((element) => ({
    element,
    more: sides(element),
    scrolls:
      element.scrollWidth > element.clientWidth + 1 &&
      /auto|scroll/.test(getComputedStyle(element).overflowX),
  }));
  for (const { element, more, scrolls } of measured) {
    if (scrolls) {
      element.addEventListener("scroll", fade, { passive: true }); // a second time does nothing
      element.dataset.more = more;
    } else {
      delete element.dataset.more;
    }
    if (scrolls && !element.querySelector("[tabindex], a, button, input, summary")) {
      element.tabIndex = 0;
    } else if (!scrolls && element.tabIndex === 0) {
      element.removeAttribute("tabindex");
    }
  }
}

let asked = 0;
/** Before the next picture, once: on paper two thousand folds open together. */
function makeReachableSoon() {
  asked ||= requestAnimationFrame(() => {
    asked = 0;
    makeReachable();
  });
}

/** Counts the questions whose first opened answer is the right one, and says so below the question. */
function keepCount() {
  const questions = [...document.querySelectorAll(".attn-quiz")];
  if (!questions.length) return;
  const first = new Map();
  const score = document.createElement("p");
  score.className = "attn-score";
  score.setAttribute("role", "status");
  for (const question of questions) {
    question.addEventListener(
      "toggle",
      (event) => {
        if (!event.target.open) return;
        const right = event.target.classList.contains("attn-right");
        if (!first.has(question)) first.set(question, right);
        question.after(score);
        const found = [...first.values()].filter(Boolean).length;
        const word = right ? "Right." : "Not right.";
        score.textContent = // set once it stands there, so that it is read out
          `${word} At the first try ${found} of ${first.size} answered, ` +
          `${questions.length} question${questions.length > 1 ? "s" : ""} in all.`;
      },
      true, // a toggle does not bubble
    );
  }
}

/** Sphinx marks the words of a search also in style sheets and drawings, which breaks them. */
function keepDrawingsUnmarked() {
  for (const element of document.querySelectorAll(
    "style, script, svg, svg *, [class^=attncourse-], [class^=attncourse-] *",
  )) {
    element.classList.add("nohighlight");
  }
}

/** On a phone a tap in the page's contents closes them, and the book's open where the reader is. */
function mindSideBars() {
  for (const bar of document.querySelectorAll(".bd-sidebar-secondary")) {
    bar.addEventListener("click", (event) => {
      if (event.target.closest("a[href^='#']")) document.getElementById("pst-secondary-sidebar-checkbox").checked = false;
    });
  }
  const bar = document.querySelector(".bd-sidebar-primary");
  const toggle = document.getElementById("pst-primary-sidebar-checkbox");
  const here = bar?.querySelector(".toctree-l1.current.active > a");
  if (!toggle || !here) return;
  const showHere = () => {
    if (!toggle.checked) return;
    here.focus({ preventScroll: true });
    bar.scrollTop += here.getBoundingClientRect().top - bar.clientHeight / 2;
  };
  // After a tenth of a second the theme gives the bar's first link the focus, which leads to the top. And
  // a bar that no frame has shown yet takes no focus.
  const afterFrame = (step) => requestAnimationFrame(() => requestAnimationFrame(step));
  document.querySelector(".primary-toggle")?.addEventListener("click", () => setTimeout(afterFrame, 150, showHere));
}

/** The theme names its search button by a word that leaves out what stands on it. */
function nameByText() {
  for (const button of document.querySelectorAll("button.search-button-field[aria-label]")) {
    button.removeAttribute("aria-label");
  }
}

/** The theme's side bar is no landmark, and its logo stands in none. */
function markSideBar() {
  const bar = document.querySelector(".bd-sidebar-primary");
  bar?.setAttribute("role", "complementary");
  bar?.setAttribute("aria-label", "Book");
}

/** A formula that is copied is its TeX: a drawing has no text, and MathML none that one can read. */
document.addEventListener("copy", (event) => {
  const selection = getSelection();
  const copied = document.createElement("div");
  for (let i = 0; i < selection.rangeCount; i++) copied.append(selection.getRangeAt(i).cloneContents());
  const formulas = copied.querySelectorAll("mjx-container");
  if (!formulas.length) return;
  for (const formula of formulas) {
    const { tex } = formula.dataset;
    formula.replaceWith(formula.hasAttribute("display") ? `\n$$${tex}$$\n` : `$${tex}$`);
  }
  for (const unread of copied.querySelectorAll("style, script, .headerlink")) unread.remove();
  copied.style.cssText = "position: fixed; left: -100vw; white-space: pre-line"; // its lines are those of a page
  document.body.append(copied);
  event.clipboardData.setData("text/plain", copied.innerText);
  copied.remove();
  event.preventDefault();
});

/** The place of the page that the address names; as it stands where it is no encoded text. */
function placeNamed() {
  const name = location.hash.slice(1);
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** A link to a folded cell, or to a piece under Deeper, opens it. */
function unfoldTarget() {
  if (location.hash.startsWith("#set=")) return; // a figure's setting (states.js)
  const target = document.getElementById(placeNamed());
  const named = target?.matches(".bd-article span");
  const cell = named ? target.nextElementSibling : target;
  const piece = named ? target.parentElement : target;
  const fold = cell?.matches(".cell")
    ? cell.querySelector("details")
    : piece?.querySelector(":scope > details.attn-deeper");
  if (!fold || fold.open) return;
  fold.open = true;
  target.scrollIntoView();
}
window.addEventListener("hashchange", unfoldTarget);

/** What is folded on the screen is printed, and folded again afterwards; paper is light. */
let unfolded = [];
let theme = "";
window.addEventListener("beforeprint", () => {
  theme = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  unfolded = [...document.querySelectorAll("details.attn-deeper:not([open])")];
  for (const fold of unfolded) fold.open = true;
});
window.addEventListener("afterprint", () => {
  document.documentElement.dataset.theme = theme;
  for (const fold of unfolded) fold.open = false;
});

document.addEventListener("DOMContentLoaded", () => {
  nameByText();
  markSideBar();
  unfoldTarget();
  keepCount();
  keepDrawingsUnmarked();
  mindSideBars();
  makeReachable();
});
window.addEventListener("load", makeReachable);
window.addEventListener("resize", makeReachableSoon);
document.addEventListener("toggle", makeReachableSoon, true);
