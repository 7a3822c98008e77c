// All ports at once: a row for each port, a column for each moment, and the load or the queue as a colour.

import { isAfterGap, ticksWithin } from "./curves.js";
import { rateText, shortText } from "./units.js";

const COLUMNS = 240;
const LABEL = 110;
const MOST_FRAMES = 1000;
/** From dark to light, so that it can be read without colours too (viridis of Smith and van der Walt). */
const STOPS = [
  [68, 1, 84],
  [59, 82, 139],
  [33, 145, 140],
  [94, 201, 98],
  [253, 231, 37],
];

/** What a way has of each quantity, as a share of the scale; `null`: nothing can be said. */
export const QUANTITIES = {
  load: (way) => (way.load === null ? null : Math.min(1, way.load)),
  queue: (way) => (way.known === false ? null : queueShare(way.queue)),
};

function queueShare(frames) {
  return Math.min(1, Math.log10(1 + frames) / Math.log10(1 + MOST_FRAMES));
}

/** The colour of a share from 0 to 1: red, green and blue. */
export function heatColour(share) {
  const place = Math.min(1, Math.max(0, share)) * (STOPS.length - 1);
  const below = Math.min(STOPS.length - 2, Math.floor(place));
  return STOPS[below].map((from, part) => Math.round(from + (STOPS[below + 1][part] - from) * (place - below)));
}

/** The shares of all ways over the `seconds` up to the last of `ticks`, row by row; NaN where nothing is known. */
export function heatCells(ticks, seconds, of) {
  const rows = ticks.at(-1)?.ways.length ?? 0;
  const cells = new Float32Array(rows * COLUMNS).fill(NaN);
  const last = ticks.at(-1)?.now ?? 0;
  const column = (now) => Math.round(COLUMNS * (1 - (last - now) / seconds));
  ticks.forEach((tick, place) => {
    const until = column(tick.now);
    const before = ticks[place - 1]?.now ?? -Infinity;
    const from = isAfterGap(tick, before) ? until - 1 : column(before);
    for (let at = Math.max(0, from); at < until; at += 1) {
      tick.ways.forEach((way, row) => (cells[row * COLUMNS + at] = of(way) ?? NaN));
    }
  });
  return cells;
}

/** The numbers of the rows, in their order or with the largest sums first. */
export function heatOrder(cells, busiest) {
  const sums = Array.from({ length: cells.length / COLUMNS }, (_, row) =>
    cells.subarray(row * COLUMNS, (row + 1) * COLUMNS).reduce((sum, one) => (one > 0 ? sum + one : sum), 0),
  );
  const rows = sums.map((_, row) => row);
  return busiest ? rows.sort((one, other) => sums[other] - sums[one] || one - other) : rows;
}

export class HeatMap {
  /** Of `ports` (`port`, and `number` of its link); `choose` is called with the number of a link. */
  constructor(ports, choose) {
    const part = (id) => document.getElementById(id);
    this.ports = ports;
    this.box = part("heat");
    this.canvas = part("heat-map");
    this.told = part("heat-told");
    this.quantity = part("heat-of");
    this.order = part("heat-order");
    this.small = document.createElement("canvas");
    this.rows = [];
    this.ticks = [];
    this.seconds = 1;
    for (const one of [this.quantity, this.order]) one.addEventListener("change", () => this.draw());
    this.box.addEventListener("toggle", () => this.draw());
    this.canvas.addEventListener("pointermove", (event) => this.#tell(event));
    this.canvas.addEventListener("click", (event) => {
      const row = this.#row(event);
      if (row !== undefined) choose(this.ports[row].number);
    });
  }

  /** Shows the `seconds` up to the last of `ticks`, if it is open. */
  draw(ticks = this.ticks, seconds = this.seconds) {
    [this.ticks, this.seconds] = [ticks, seconds];
    if (!this.box.open || ticks.length === 0) return;
    const kept = ticksWithin(ticks, ticks.at(-1).now, seconds);
    const cells = heatCells(kept, seconds, QUANTITIES[this.quantity.value]);
    this.rows = heatOrder(cells, this.order.value === "busiest");
    const height = this.#rowHeight();
    this.canvas.width = Math.max(LABEL + COLUMNS, this.canvas.clientWidth);
    this.canvas.height = height * this.rows.length;
    this.#paint(cells);
    const context = this.canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(this.small, LABEL, 0, this.canvas.width - LABEL, this.canvas.height);
    if (height < 11) return;
    context.fillStyle = getComputedStyle(this.canvas).color;
    context.font = `${height - 2}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    this.rows.forEach((row, place) => context.fillText(this.ports[row].port, 0, (place + 0.5) * height, LABEL - 6));
  }

  /** Puts one pixel for each cell onto the small canvas. */
  #paint(cells) {
    [this.small.width, this.small.height] = [COLUMNS, this.rows.length];
    const image = new ImageData(COLUMNS, this.rows.length);
    this.rows.forEach((row, place) => {
      for (let at = 0; at < COLUMNS; at += 1) {
        const share = cells[row * COLUMNS + at];
        if (!Number.isNaN(share)) image.data.set([...heatColour(share), 255], 4 * (place * COLUMNS + at));
      }
    });
    this.small.getContext("2d").putImageData(image, 0, 0);
  }

  #rowHeight() {
    return Math.min(18, Math.max(3, Math.floor(700 / Math.max(1, this.ports.length))));
  }

  /** The number of the way under the pointer. */
  #row(event) {
    const box = this.canvas.getBoundingClientRect();
    return this.rows[Math.floor(((event.clientY - box.top) / box.height) * this.rows.length)];
  }

  #tell(event) {
    const row = this.#row(event);
    const box = this.canvas.getBoundingClientRect();
    const share = ((event.clientX - box.left) * (this.canvas.width / box.width) - LABEL) / (this.canvas.width - LABEL);
    if (row === undefined || share < 0) return;
    const moment = this.ticks.at(-1).now - this.seconds * (1 - share);
    const tick = this.ticks.find(({ now }) => now >= moment);
    if (tick === undefined || isAfterGap(tick, moment) || tick.ways[row].known === false) return;
    const { rate, load, queue } = tick.ways[row];
    const full = load === null ? "" : `, ${shortText(100 * load)} % busy`;
    const at = `${this.ports[row].port} at ${tick.now.toFixed(1)} s`;
    this.told.textContent = `${at}: ${rateText(rate)}${full}, queue ${queue}`;
  }
}
