// The page of a campaign: its plan once, then every two seconds what has changed, while somebody looks.

import { spanText } from "./spans.js";
import { leaveToken } from "./token.js";

const EVERY_MS = 2000;
const MOST_CELLS = 10_000;
const SIGNS = { waiting: "·", running: "▸", valid: "✓", doubtful: "?", invalid: "✗", failed: "!" };
const ENDED = ["valid", "doubtful", "invalid", "failed"];

const at = (id) => document.getElementById(id);

leaveToken();
const plan = await (await fetch("plan")).json();
const cells = [];
let change = -1;

at("study").textContent = plan.study;
at("title").textContent = plan.title;
at("time").textContent = plan.folder;
at("loads").replaceChildren(
  ...plan.loads.map((words) => {
    const item = document.createElement("li");
    item.textContent = words;
    return item;
  }),
);
document.title = `${plan.study} – twinnet campaign`;

const rows = new Map();
plan.runs.slice(0, MOST_CELLS).forEach(({ name, levels, repetition }, number) => {
  if (!rows.has(levels)) {
    const row = at("runs").insertRow();
    row.insertCell().textContent = levels;
    rows.set(levels, row.insertCell());
  }
  const cell = document.createElement("a");
  cells.push({ cell, name, number, repetition });
  rows.get(levels).append(cell);
  show(number, "waiting");
});
if (plan.runs.length > MOST_CELLS) {
  at("more").hidden = false;
  at("more").textContent = `The first ${MOST_CELLS} of ${plan.runs.length} runs.`;
}

/** Shows the state of the run `number`, which can be opened when it has ended. */
function show(number, state) {
  if (cells[number] === undefined) return;
  const { cell, name, repetition } = cells[number];
  cell.className = `run ${state}`;
  cell.textContent = SIGNS[state];
  cell.title = `${name}: ${state}`;
  cell.setAttribute("aria-label", `repetition ${repetition} of ${name}: ${state}`);
  if (ENDED.includes(state)) {
    cell.href = `run?n=${number}`;
    cell.target = "_blank";
  } else cell.removeAttribute("href");
}

function heard({ change: newest, states, counts, going, left_s: left, silent_s: silent }) {
  change = newest;
  for (const [number, state] of states) show(number, plan.states[state]);
  const ended = ENDED.reduce((sum, state) => sum + counts[state], 0);
  [at("done").value, at("done").max] = [ended, Math.max(1, plan.runs.length)];
  const shown = plan.states.filter((state) => counts[state] > 0);
  at("counts").replaceChildren(
    ...shown.map((state) => {
      const item = document.createElement("li");
      const sign = document.createElement("span");
      sign.className = `run ${state}`;
      sign.textContent = SIGNS[state];
      item.append(sign, ` ${counts[state]} ${state}`);
      return item;
    }),
  );
  at("now").hidden = going.length === 0;
  at("going").replaceChildren(
    ...going.map(({ name, fraction, doing }) => {
      const item = document.createElement("li");
      const bar = document.createElement("progress");
      bar.value = fraction;
      item.append(bar, `${name} ${doing}`);
      return item;
    }),
  );
  at("left").textContent = `${ended} of ${plan.runs.length} runs done${stateText(left, silent, ended)}`;
}

function stateText(left, silent, ended) {
  if (left !== null) return `, about ${spanText(left)} left`;
  if (silent !== null) return `; no news for ${spanText(silent)}: it may have been ended`;
  return ended < plan.runs.length ? "; nothing goes on now" : "";
}

async function look() {
  if (document.hidden) return;
  try {
    const answer = await fetch(`changes?${new URLSearchParams({ since: Math.max(0, change) })}`);
    heard(await answer.json());
    at("news").hidden = true;
  } catch {
    at("news").hidden = false;
    at("news").textContent = "No news from the page's server: it may have been stopped.";
  }
}

await look();
setInterval(look, EVERY_MS);
document.addEventListener("visibilitychange", look);
