// Sort a table by the column whose heading is pressed. Cells sort by data-v where they have one, else by their text.
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th"), table = head.closest("table"), body = table.tBodies[0];
    const up = head.getAttribute("aria-sort") === "descending";
    for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => { const cell = row.cells[head.cellIndex]; return cell.dataset.v ?? cell.textContent; };
    const order = (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      const found = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
      return up ? found : -found;
    };
    body.append(...[...body.rows].sort(order));
  });
}
