// The curves of one link over the minute before the moment that is shown.

import { element } from "./picture.js";
import { niceMost, rateText, shortText } from "./units.js";

const KEPT_S = 60;
/** Longer without news is a gap in the curve: nobody knows what was there. */
const GAP_S = 1.5;
const WIDTH = 600;
const HEIGHT = 200;
const TOP = 26;
const BOTTOM = 172;

const CURVES = [
  ["rate", (way) => way.rate, rateText],
  ["queue", (way) => way.queue, shortText],
  ["drops", (way) => way.drops, shortText],
];

/** Draws the curves of link `number` up to the last of `ticks` into the elements called rate, queue and drops. The
 * times for which the lab was late are marked. */
export function drawCurves(ticks, number) {
  const last = ticks.at(-1)?.now ?? 0;
  const kept = ticks.filter(({ now }) => now >= last - KEPT_S);
  for (const [name, of, told] of CURVES) {
    const svg = document.getElementById(name);
    const values = kept.flatMap(({ ways }) => [of(ways[2 * number]), of(ways[2 * number + 1])]);
    const most = niceMost(Math.max(0, ...values));
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    svg.replaceChildren(
      ...lateTimes(kept, last),
      element("line", { class: "axis", x1: 0, x2: WIDTH, y1: TOP, y2: TOP }),
      element("line", { class: "axis", x1: 0, x2: WIDTH, y1: BOTTOM, y2: BOTTOM }),
      element("text", { x: 0, y: TOP - 7 }, told(most)),
      element("text", { x: 0, y: HEIGHT - 8 }, "60 s before"),
      element("text", { x: WIDTH, y: HEIGHT - 8, "text-anchor": "end" }, `${last.toFixed(1)} s`),
      element("path", { class: "there", d: path(kept, last, most, (ways) => of(ways[2 * number])) }),
      element("path", { class: "back", d: path(kept, last, most, (ways) => of(ways[2 * number + 1])) }),
    );
  }
}

/** The times for which the lab was late: each judgement says it of the time since the one before. */
function lateTimes(ticks, last) {
  const x = (now) => WIDTH * (1 - (last - now) / KEPT_S);
  return ticks.flatMap(({ verdict }, place) => {
    if (verdict.late_s === 0 || verdict.at_s === ticks[place - 1]?.verdict.at_s) return [];
    const from = Math.max(0, x(verdict.at_s - verdict.late_s));
    const width = (x(verdict.at_s) - from).toFixed(1);
    return [element("rect", { class: "late", x: from.toFixed(1), y: TOP, width, height: BOTTOM - TOP })];
  });
}

function path(ticks, last, most, of) {
  let before = -Infinity;
  return ticks
    .map(({ now, ways }) => {
      const x = WIDTH * (1 - (last - now) / KEPT_S);
      const y = BOTTOM - ((BOTTOM - TOP) * of(ways)) / most;
      const step = now - before > GAP_S ? "M" : "L";
      before = now;
      return `${step}${x.toFixed(1)} ${y.toFixed(1)}`;
    })
    .join("");
}
