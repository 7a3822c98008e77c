// A recorded lab in one file: nothing is asked of any server.

import { news, View } from "./view.js";

const { network, ticks, cut_s: cut } = JSON.parse(document.getElementById("recording").textContent);
const view = new View(network);
for (const tick of ticks) view.add(tick);
view.play(false);
document.getElementById("play").addEventListener("click", () => view.play(view.player.playing, true));
if (ticks.length === 0) news("The recording is empty: the lab ended before its counters could be compared.");
else if (cut !== null) news(`The recording ends at ${cut.toFixed(1)} s, where the file was full; the lab went on.`);
