/* The book's pages as one document for paper: `[{name, text}] => {head, body}`, see tools/pdf.py.

   Each page becomes a section whose names are its own and whose links lead inside the document.
   What only works on a screen goes; the quizzes' options become lists, their answers end the page. */
(pages) => {
  const SCREEN_ONLY = `a.headerlink, .attn-badges, .attn-screen, .attn-strip, button,
    script, noscript, .toctree-wrapper, [aria-live], details.hide, .attn-symptom, .attn-filter,
    .attn-bug pre, #guide-symptoms, .ap-still details`;
  const SHORT = 24; // lines of a box that is not broken
  const places = new Map(pages.map(({ name }, number) => [name, `page-${number}`]));
  const head = new Set();

  /* A page's relative address, from the built book's folder; others as they are. */
  const within = (address, name) => {
    const base = "file:///";
    const url = new URL(address, base + name);
    return url.href.startsWith(base) ? url.href.slice(base.length) : address;
  };

  const make = (tag, html, properties = {}) =>
    Object.assign(document.createElement(tag), { innerHTML: html }, properties);

  const looks = (page, name) => {
    for (const element of page.querySelectorAll('link[rel="stylesheet"], style')) {
      const address = element.getAttribute("href");
      if (address) element.setAttribute("href", within(address, name));
      head.add(element.outerHTML);
    }
  };

  /* The glyphs of formulas, which all pages share: each stands once in the document. */
  const glyphs = new Map();
  const gather = (article) => {
    for (const glyph of article.querySelectorAll(".attn-glyphs path")) glyphs.set(glyph.id, glyph.outerHTML);
    article.querySelector(".attn-glyphs")?.remove();
  };

  /* Options with letters in place of folds; what unfolding says is returned. */
  const asked = (question) => {
    const options = make("ol", "", { className: "attn-options" });
    const said = [...question.querySelectorAll("details")].map((fold, number) => {
      const letter = String.fromCharCode(97 + number);
      const title = fold.querySelector(".sd-summary-text").innerHTML;
      options.append(make("li", title));
      const right = fold.classList.contains("attn-right");
      const text = fold.querySelector(".sd-summary-content").innerHTML;
      fold.remove();
      return `<div${right ? ' class="attn-right"' : ""}><b>${letter}</b> ${text}</div>`;
    });
    question.append(options);
    return `<section class="attn-answer"><b>${
      question.querySelector(".admonition-title").textContent
    }</b>${said.join("")}</section>`;
  };

  /* Names and links of one page, so that they hold among all. */
  const rename = (article, name, place) => {
    for (const element of article.querySelectorAll("[id]")) {
      if (!element.closest(".attn-plot")) element.id = `${place}--${element.id}`; // plots have own
    }
    for (const link of article.querySelectorAll("a[href]")) {
      const [address, named] = link.getAttribute("href").split("#");
      const fragment = named?.startsWith("set=") ? "" : named; // on paper no figure is set
      const target = places.get(address ? within(address, name) : name);
      if (target) link.setAttribute("href", `#${target}${fragment ? `--${fragment}` : ""}`);
    }
    for (const image of article.querySelectorAll("img[src]")) {
      image.setAttribute("src", within(image.getAttribute("src"), name));
    }
    for (const attribute of ["for", "aria-labelledby", "aria-describedby"]) {
      for (const element of article.querySelectorAll(`[${attribute}]`)) {
        element.setAttribute(attribute, `${place}--${element.getAttribute(attribute)}`);
      }
    }
  };

  const section = ({ name, text }) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    const article = page.querySelector("article.bd-article");
    looks(page, name);
    gather(article);
    for (const text of article.querySelectorAll("script.attn-body")) text.outerHTML = text.textContent;
    for (const words of article.querySelectorAll(".attn-do")) words.replaceWith(...words.childNodes);
    for (const element of article.querySelectorAll(SCREEN_ONLY)) element.remove();
    for (const link of article.querySelectorAll('a[href$="#guide-symptoms"]')) {
      link.replaceWith(...link.childNodes); // to what only a screen has
    }
    for (const cell of article.querySelectorAll(".cell")) {
      if (!cell.querySelector(".cell_input, .cell_output > *")) cell.remove();
    }
    const answers = [...article.querySelectorAll(".attn-quiz")].map(asked);
    for (const fold of article.querySelectorAll(".attn-bug")) {
      const { id, className } = fold;
      const text = fold.innerHTML.replace(/(<\/?)summary/g, "$1p");
      fold.replaceWith(make("div", text, { id, className }));
    }
    for (const fold of article.querySelectorAll("details")) { // .attn-deeper: opened by printing
      fold.querySelector(":scope > summary")?.remove();
      fold.replaceWith(...fold.childNodes);
    }
    for (const box of article.querySelectorAll("pre")) {
      if (box.textContent.trim().split("\n").length <= SHORT) box.classList.add("attn-whole");
    }
    for (const short of article.querySelectorAll(".ap-answers")) { // of the drills: where those of the quiz are
      answers.push(short.outerHTML);
      short.remove();
    }
    if (answers.length) {
      const where = 'The answers <a href="#answers">end this chapter</a>.';
      for (const asking of [...article.querySelectorAll(".attn-quiz")].slice(-1).concat(...article.querySelectorAll(".ap-still"))) {
        asking.after(make("p", where));
      }
      const title = "<h2>Answers to the questions</h2>";
      article.firstElementChild.append(make("section", title + answers.join(""), { id: "answers" }));
    }
    const place = places.get(name);
    rename(article, name, place);
    article.id = place;
    article.className = "attn-page";
    return article.outerHTML;
  };

  const body = pages.map(section).join("");
  const drawn = `<svg class="attn-glyphs"><defs>${[...glyphs.values()].join("")}</defs></svg>`;
  return { head: [...head].join(""), body: body + drawn };
}
