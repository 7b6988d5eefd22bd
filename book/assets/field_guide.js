// The field guide: a link to a folded entry unfolds it, and paper shows them all.

function unfold() {
  const entry = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!(entry instanceof HTMLDetailsElement) || entry.open) return;
  entry.open = true;
  entry.scrollIntoView();
}

let folded = [];

addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll(".bd-article details:not([open])")];
  for (const entry of folded) entry.open = true;
});
addEventListener("afterprint", () => {
  for (const entry of folded) entry.open = false;
});
addEventListener("hashchange", unfold);
addEventListener("DOMContentLoaded", unfold);
