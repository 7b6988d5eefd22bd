// How the search ranks what it finds: Sphinx's own rules, but the chapter first that a term names, and
// chapters before the glossary and other pages that are looked things up in.

const stemsOf = (text) => {
  const stemmer = new Stemmer();
  return text.toLowerCase().match(/[a-z]+/g)?.map((word) => stemmer.stemWord(word)) ?? [];
};

var Scorer = {
  /** Gets [docname, title, anchor, description, score, filename], gives the score that counts. */
  score: ([page, title, anchor, , score]) => {
    if (!/\d\d_/.test(page)) return score - 200;
    if (anchor) return score;
    const asked = stemsOf(new URLSearchParams(location.search).get("q") ?? "");
    // <span class="section-number">10. </span>Masking: what a model must not see
    const named = stemsOf(title.replace(/<[^>]+>/g, "").split(":")[0]);
    const whole = asked.length > 0 && asked.every((stem) => named.includes(stem));
    return whole ? score + 100 * (asked.length / named.length) : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
