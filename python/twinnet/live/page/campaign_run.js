// The page of a run that is being made: what it does, every two seconds while somebody looks, until it has ended.

import { spanText } from "./spans.js";

const EVERY_MS = 2000;
const GOES_ON = ["waiting", "running"];

const at = (id) => document.getElementById(id);
const asked = `going${location.search}`;

function heard({ name, levels, repetition, state, fraction, doing, for_s: lasts }) {
  // Its own page is at the same address.
  if (!GOES_ON.includes(state)) return location.reload();
  document.title = `${name} – twinnet run`;
  at("run").textContent = name;
  at("levels").textContent = `${levels}, repetition ${repetition}`;
  at("state").textContent = state;
  at("state").className = `run ${state}`;
  at("done").value = fraction;
  const percent = Math.round(100 * fraction);
  at("doing").textContent = state === "running" ? `${percent} %: ${doing}` : "Not begun, or stopped.";
  at("begun").hidden = lasts === null;
  if (lasts === null) return undefined;
  const begun = new Date(Date.now() - 1000 * lasts);
  at("begun").textContent = `Started at ${begun.toLocaleTimeString()}, ${spanText(lasts)} ago.`;
  return undefined;
}

async function look() {
  if (document.hidden) return;
  try {
    const answer = await fetch(asked);
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
