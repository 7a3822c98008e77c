// The table of the busiest ports: a row opens the curves of its link, by a click anywhere or by the name of its port,
// which the keyboard reaches.

import { rateText, shortText } from "./units.js";

const CELLS = [
  ({ to }) => to,
  ({ rate }) => rateText(rate),
  ({ load }) => (load === null ? "–" : `${shortText(100 * load)} %`),
  ({ queue }) => String(queue),
  ({ drops }) => shortText(drops),
];

/** Shows `busiest` (ways, with `port`, `to` and the `number` of the link) in `body`; `choose` is called with the number
 * of a link. Rows of ports that stay are the same elements, and who stands on one stays on it. */
export function showPorts(body, busiest, choose) {
  const before = new Map([...body.rows].map((row) => [row.dataset.port, row]));
  const rows = busiest.map((one) => {
    const row = before.get(one.port) ?? newRow(one, choose);
    CELLS.forEach((text, place) => (row.cells[place + 1].textContent = text(one)));
    return row;
  });
  if (rows.length === body.rows.length && rows.every((row, place) => row === body.rows[place])) return;
  const focused = body.contains(document.activeElement) ? document.activeElement : null;
  body.replaceChildren(...rows);
  focused?.focus({ preventScroll: true });
}

function newRow({ port, number }, choose) {
  const row = document.createElement("tr");
  row.dataset.port = port;
  const name = Object.assign(document.createElement("a"), { href: "#curves", textContent: port });
  row.insertCell().append(name);
  for (const _ of CELLS) row.insertCell();
  row.addEventListener("click", (event) => {
    event.preventDefault();
    choose(number);
  });
  return row;
}
