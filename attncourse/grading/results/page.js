"use strict";
const table = document.getElementById("students");
if (table) {
  const body = table.tBodies[0], rows = [...body.rows];
  const filter = document.querySelector(".filter"), shown = document.getElementById("shown");
  const word = document.getElementById("word"), look = document.getElementById("look");
  const texts = rows.map((row) => row.textContent.toLowerCase());

  const apply = () => {
    const wanted = word.value.toLowerCase().trim();
    let count = 0;
    rows.forEach((row, i) => {
      row.hidden = !texts[i].includes(wanted) || (look.checked && !row.dataset.look);
      count += !row.hidden;
    });
    shown.textContent = `${count} of ${rows.length} shown`;
  };

  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.key ? Number(cell.dataset.key) : cell.textContent.trim();
  };

  const sort = (head) => {
    const column = head.cellIndex, down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const order = rows.map((row) => [key(row, column), row]);
    const words = new Intl.Collator(undefined, { numeric: true });
    order.sort(([a], [b]) => {
      const by = typeof a === "number" ? a - b : words.compare(a, b);
      return down ? -by : by;
    });
    body.append(...order.map(([, row]) => row));
  };

  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort(head));
    head.replaceChildren(button);
  }
  word.addEventListener("input", apply);
  look.addEventListener("change", apply);
  filter.hidden = false;
  apply();
}
