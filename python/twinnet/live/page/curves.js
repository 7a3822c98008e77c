// What the links did in the last minute, and the curves of one of them.

import { element } from "./picture.js";
import { niceMost, rateText, shortText } from "./units.js";

const KEPT_S = 60;
/** Longer without news is a gap in the curve: nobody knows what was there. */
const GAP_S = 1.5;
const WIDTH = 600;
const HEIGHT = 200;
const TOP = 26;
const BOTTOM = 172;

export class History {
  /** The ticks of the last minute of the lab's clock. */
  constructor() {
    this.ticks = [];
  }

  add(now, ways) {
    this.ticks.push({ now, ways });
    let old = 0;
    while (this.ticks[old].now < now - KEPT_S) old += 1;
    this.ticks.splice(0, old);
  }
}

const CURVES = [
  ["rate", (way) => way.rate, rateText],
  ["queue", (way) => way.queue, shortText],
  ["drops", (way) => way.drops, shortText],
];

/** Draws the curves of link `number` into the elements called rate, queue and drops. */
export function drawCurves(history, number) {
  const last = history.ticks.at(-1)?.now ?? 0;
  for (const [name, of, told] of CURVES) {
    const svg = document.getElementById(name);
    const values = history.ticks.flatMap(({ ways }) => [of(ways[2 * number]), of(ways[2 * number + 1])]);
    const most = niceMost(Math.max(0, ...values));
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    svg.replaceChildren(
      element("line", { class: "axis", x1: 0, x2: WIDTH, y1: TOP, y2: TOP }),
      element("line", { class: "axis", x1: 0, x2: WIDTH, y1: BOTTOM, y2: BOTTOM }),
      element("text", { x: 0, y: TOP - 7 }, told(most)),
      element("text", { x: 0, y: HEIGHT - 8 }, "60 s ago"),
      element("text", { x: WIDTH, y: HEIGHT - 8, "text-anchor": "end" }, "now"),
      element("path", { class: "there", d: path(history.ticks, last, most, (ways) => of(ways[2 * number])) }),
      element("path", { class: "back", d: path(history.ticks, last, most, (ways) => of(ways[2 * number + 1])) }),
    );
  }
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
