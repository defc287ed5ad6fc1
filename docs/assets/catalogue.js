// The filters of the metric catalogue. Without it the table is whole.
document.addEventListener("DOMContentLoaded", () => {
  const table = document.getElementById("metrics-table");
  if (!table) return;
  const rows = [...table.tBodies[0].rows];
  const filters = [...document.querySelectorAll("#metrics-filters [name]")];
  const shown = document.getElementById("metrics-shown");
  const apply = () => {
    const wanted = Object.fromEntries(filters.map((filter) => [filter.name, filter.value.trim().toLowerCase()]));
    let count = 0;
    for (const row of rows) {
      const words = wanted.text.split(/\s+/).filter(Boolean);
      const fits =
        words.every((word) => row.textContent.toLowerCase().includes(word)) &&
        ["kind", "family", "group", "need"].every((name) => !wanted[name] || row.dataset[name].split(" ").includes(wanted[name]));
      row.hidden = !fits;
      count += fits;
    }
    shown.textContent = `${count} of ${rows.length}`;
    const query = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
    history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}${location.hash}`);
  };
  const given = new URLSearchParams(location.search);
  for (const filter of filters) {
    if (given.has(filter.name)) filter.value = given.get(filter.name);
    filter.addEventListener("input", apply);
  }
  document.getElementById("metrics-filters").hidden = false;
  apply();
});
