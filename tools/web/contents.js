/* Fills the printed book's contents: `{id: page}`, empty while no heading's page is known. */
(pages) => {
  const list = document.querySelector(".attn-contents > div");
  list.replaceChildren();
  document.querySelectorAll(".attn-page :is(h1, h2)").forEach((heading, at) => {
    heading.id ||= `heading-${at}`;
    const line = document.createElement("p");
    line.className = heading.tagName === "H1" ? "attn-chapter" : "";
    const link = Object.assign(document.createElement("a"), { href: `#${heading.id}` });
    link.append(heading.textContent.trim());
    const number = document.createElement("span"); // as wide before it is known as after
    number.append(String(pages[heading.id] ?? "000"));
    line.append(link, number);
    list.append(line);
  });
}
