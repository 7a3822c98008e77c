// The page of a campaign: its plan once, then every two seconds what has changed, while somebody looks.

import { spanText } from "./spans.js";
import { leaveToken } from "./token.js";

const EVERY_MS = 2000;
const MOST_CELLS = 10_000;
const SIGNS = { waiting: "·", running: "▸", valid: "✓", doubtful: "?", invalid: "✗", failed: "!" };
const ENDED = ["valid", "doubtful", "invalid", "failed"];
const OPENED = ["running", ...ENDED];

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
    row.insertCell();
    rows.set(levels, row);
  }
  const cell = document.createElement("a");
  cells.push({ cell, name, number, repetition, state: "waiting" });
  rows.get(levels).lastChild.append(cell);
  show(number, "waiting");
});
if (plan.runs.length > MOST_CELLS) {
  at("more").hidden = false;
  at("more").textContent = `The first ${MOST_CELLS} of ${plan.runs.length} runs.`;
}

/** The states whose runs alone are shown; none: all of them. */
const wanted = new Set();
const counted = new Map(plan.states.map((state) => [state, countOf(state)]));
at("counts").replaceChildren(...[...counted.values()].map(({ item }) => item));

/** Of a state the item that counts its runs: a button that shows these alone. */
function countOf(state) {
  const [item, button, sign, words] = ["li", "button", "span", "span"].map((name) => document.createElement(name));
  sign.className = `run ${state}`;
  sign.textContent = SIGNS[state];
  button.type = "button";
  button.setAttribute("aria-pressed", "false");
  button.append(sign, " ", words);
  button.addEventListener("click", () => {
    if (!wanted.delete(state)) wanted.add(state);
    button.setAttribute("aria-pressed", String(wanted.has(state)));
    filter();
  });
  item.append(button);
  item.hidden = true;
  return { item, words };
}

/** Shows the runs of the wanted states, and the rows that have some. */
function filter() {
  for (const { cell, state } of cells) cell.hidden = wanted.size > 0 && !wanted.has(state);
  for (const row of rows.values()) row.hidden = [...row.lastChild.children].every((cell) => cell.hidden);
  const shown = cells.filter(({ cell }) => !cell.hidden).length;
  at("shown").textContent = wanted.size > 0 ? `${shown} of ${plan.runs.length} runs: ${[...wanted].join(", ")}` : "";
}

/** Shows the state of the run `number`, which can be opened when it has begun. */
function show(number, state) {
  if (cells[number] === undefined) return;
  cells[number].state = state;
  const { cell, name, repetition } = cells[number];
  cell.className = `run ${state}`;
  cell.textContent = SIGNS[state];
  cell.title = `${name}: ${state}`;
  cell.setAttribute("aria-label", `repetition ${repetition} of ${name}: ${state}`);
  if (OPENED.includes(state)) {
    cell.href = `run?n=${number}`;
    cell.target = "_blank";
  } else cell.removeAttribute("href");
}

function heard({ change: newest, states, counts, going, left_s: left, silent_s: silent }) {
  change = newest;
  for (const [number, state] of states) show(number, plan.states[state]);
  const ended = ENDED.reduce((sum, state) => sum + counts[state], 0);
  [at("done").value, at("done").max] = [ended, Math.max(1, plan.runs.length)];
  for (const [state, { item, words }] of counted) {
    item.hidden = counts[state] === 0 && !wanted.has(state);
    words.textContent = `${counts[state]} ${state}`;
  }
  if (states.length > 0) filter();
  at("now").hidden = going.length === 0;
  showGoing(going);
  at("left").textContent = `${ended} of ${plan.runs.length} runs done${stateText(left, silent, ended)}`;
}

/** Shows what is being made; who stands on a link to it stays there. */
function showGoing(going) {
  const items = new Map([...at("going").children].map((item) => [item.dataset.run, item]));
  for (const { number, name, fraction, doing } of going) {
    const item = items.get(name) ?? goingItem(number, name);
    items.delete(name);
    item.firstChild.value = fraction;
    item.lastChild.textContent = doing;
  }
  for (const ended of items.values()) ended.remove();
}

function goingItem(number, name) {
  const [item, bar, link, words] = ["li", "progress", "a", "span"].map((one) => document.createElement(one));
  item.dataset.run = name;
  Object.assign(link, { href: `run?n=${number}`, target: "_blank", textContent: name });
  item.append(bar, link, words);
  at("going").append(item);
  return item;
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
