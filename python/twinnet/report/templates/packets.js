(() => {
  const rows = JSON.parse(document.getElementById("packet-rows").textContent);
  const table = document.getElementById("packets"), body = table.tBodies[0];
  const filter = document.getElementById("filter"), matching = document.getElementById("matching");
  const heads = [...table.tHead.rows[0].cells];
  const numbers = new Set([0, 1, 5]);
  const shown = (row) => row.map((one, column) => one === null ? "" : column === 1 ? one.toFixed(6) : String(one));
  // Each row is made once; sorting and filtering only choose which stand in the table, and in which order.
  const made = rows.map((row) => {
    const texts = shown(row), line = document.createElement("tr");
    for (const [column, text] of texts.entries()) {
      const cell = line.insertCell();
      cell.textContent = text;
      if (numbers.has(column)) cell.className = "right";
    }
    return { row, line, text: texts.join(" ").toLowerCase() };
  });
  // Addresses are compared with their numbers as numbers, so that 10.0.0.2 comes before 10.0.0.10.
  const order = new Intl.Collator("en", { numeric: true });
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : order.compare(a ?? "", b ?? "");
  let by = 0, sign = 1;
  const draw = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kept = made.filter((one) => words.every((word) => one.text.includes(word)));
    kept.sort((a, b) => sign * compare(a.row[by], b.row[by]) || a.row[0] - b.row[0]);
    body.replaceChildren(...kept.map((one) => one.line));
    matching.textContent = `${kept.length} of ${made.length}`;
    heads.forEach((head, column) => {
      if (column === by) head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
  };
  heads.forEach((head, column) => head.firstChild.addEventListener("click", () => {
    [by, sign] = [column, column === by ? -sign : 1];
    draw();
  }));
  filter.addEventListener("input", draw);
  draw();
})();
