// A recorded lab, a finished run, or two of them, in one file: nothing is asked of any server.

import { showActs } from "./acts.js";
import { MOST_S } from "./curves.js";
import { KeptWays } from "./follow.js";
import { showKeptTraffic } from "./tables.js";
import { kept, news, View } from "./view.js";

const recorded = JSON.parse(document.getElementById("recording").textContent);
const { network, ticks, acts, beside, cut_s: cut } = recorded;
const view = new View(network, undefined, true);
view.play(false);
view.acts = acts;
showActs(acts);
document.getElementById("acts").hidden = acts.length === 0;
for (const tick of ticks) view.add(tick);
if (ticks.some(({ ways }) => ways.includes(null))) document.getElementById("unknown").hidden = false;
document.getElementById("filled").hidden = (network.filled ?? []).length === 0;
// The curves of a short recording have the whole width.
if (ticks.length > 1) view.seconds = Math.min(MOST_S, ticks.at(-1).now_s - ticks[0].now_s);
new KeptWays(view, network.followed ?? []);
showKeptTraffic(network.traffic ?? null, beside === null ? "" : "Those of the first run.");
const notes = [];
if (network.repetitions) {
  notes.push(`Mean of ${network.repetitions} runs; the ground of a curve is the 95 % confidence interval of the mean.`);
}
if (beside !== null) {
  view.beside = beside.ticks.map(kept);
  notes.push(`Thin lines: ${beside.name}`);
  for (const one of document.querySelectorAll(".difference")) one.hidden = false;
}
document.getElementById("beside").textContent = notes.join(" ");
document.getElementById("beside").hidden = notes.length === 0;
if (ticks.length > 0) view.player.put(ticks.at(-1).now_s);
document.getElementById("play").addEventListener("click", () => view.play(view.player.playing, true));
if (ticks.length === 0) news("The recording is empty: the lab ended before its counters could be compared.");
else if (cut !== null) news(`The recording ends at ${cut.toFixed(1)} s, where the file was full; the lab went on.`);
