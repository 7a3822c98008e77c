// All ports at once: a row for each port, a column for each moment, and the load or the queue as a colour.

import { isAfterGap, ticksWithin } from "./curves.js";
import { rateText, shortText } from "./units.js";

const COLUMNS = 240;
const LABEL = 110;
const MOST_FRAMES = 1000;
/** Lower rows have no names; only that which is read has its name beside it. */
const LEAST_READABLE = 11;
/** By how many rows down and columns to the right a key goes. */
const KEYS = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-10, 0],
  PageDown: [10, 0],
  Home: [0, -COLUMNS],
  End: [0, COLUMNS],
};
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
    this.choose = choose;
    this.box = part("heat");
    this.canvas = part("heat-map");
    this.told = part("heat-told");
    this.quantity = part("heat-of");
    this.order = part("heat-order");
    this.small = document.createElement("canvas");
    this.rows = [];
    this.ticks = [];
    this.seconds = 1;
    /** The cell that is read: the number of its way, and its column; `isKey`: the keyboard has gone there. */
    this.spot = null;
    for (const one of [this.quantity, this.order]) one.addEventListener("change", () => this.draw());
    this.box.addEventListener("toggle", () => this.draw());
    this.canvas.addEventListener("pointermove", (event) => this.#point(event));
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    for (const name of ["pointerleave", "blur"]) this.canvas.addEventListener(name, () => this.#read(null));
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
    this.#paint(cells);
    this.#show();
  }

  /** Puts what is painted onto the page, with the names of rows that have room, and that of the row that is read. */
  #show() {
    const { canvas, spot } = this;
    const height = this.#rowHeight();
    canvas.width = Math.max(LABEL + COLUMNS, canvas.clientWidth);
    canvas.height = height * this.rows.length;
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(this.small, LABEL, 0, canvas.width - LABEL, canvas.height);
    context.fillStyle = context.strokeStyle = getComputedStyle(canvas).color;
    context.textBaseline = "middle";
    const named = (place, size) => {
      context.font = `${size}px system-ui, sans-serif`;
      const middle = Math.min(Math.max((place + 0.5) * height, size / 2), canvas.height - size / 2);
      context.fillText(this.ports[this.rows[place]].port, 0, middle, LABEL - 6);
    };
    const place = spot === null ? -1 : this.rows.indexOf(spot.row);
    if (height >= LEAST_READABLE) this.rows.forEach((_, one) => named(one, height - 2));
    else if (place >= 0) named(place, 14);
    if (place < 0 || !spot.isKey) return;
    const wide = (canvas.width - LABEL) / COLUMNS;
    context.lineWidth = 2;
    context.strokeRect(LABEL + spot.column * wide - 2, place * height - 2, wide + 4, height + 4);
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

  #point(event) {
    const row = this.#row(event);
    const box = this.canvas.getBoundingClientRect();
    const share = ((event.clientX - box.left) * (this.canvas.width / box.width) - LABEL) / (this.canvas.width - LABEL);
    const column = Math.min(COLUMNS - 1, Math.floor(share * COLUMNS));
    if (row !== undefined) this.#read({ row, column, isKey: false });
  }

  #key(event) {
    if (this.rows.length === 0) return;
    const { row, column } = this.spot ?? { row: this.rows[0], column: COLUMNS };
    const place = Math.max(0, this.rows.indexOf(row));
    if (event.key === "Enter" && this.spot !== null) this.choose(this.ports[row].number);
    else if (event.key in KEYS) {
      const [down, right] = this.spot === null ? [0, -1] : KEYS[event.key];
      const within = (at, most) => Math.min(Math.max(0, at), most - 1);
      const there = this.rows[within(place + down, this.rows.length)];
      this.#read({ row: there, column: within(column + right, COLUMNS), isKey: true });
      this.#scrollTo(this.rows.indexOf(there));
    } else return;
    event.preventDefault();
  }

  /** Has the row at this place be seen: a map of many ports is higher than the window. */
  #scrollTo(place) {
    const top = this.canvas.getBoundingClientRect().top + place * this.#rowHeight();
    const middle = window.innerHeight / 2;
    if (Math.abs(top - middle) > 0.7 * middle) window.scrollBy(0, top - middle);
  }

  /** Reads the cell `spot`; `null`: none. */
  #read(spot) {
    this.spot = spot;
    if (this.rows.length === 0) return;
    this.#show();
    if (spot !== null) this.#tell();
  }

  #tell() {
    const { row, column } = this.spot;
    if (column < 0) return;
    const moment = this.ticks.at(-1).now - this.seconds * (1 - (column + 0.5) / COLUMNS);
    const tick = this.ticks.find(({ now }) => now >= moment);
    const { port } = this.ports[row];
    const unknown = tick === undefined || isAfterGap(tick, moment) || tick.ways[row].known === false;
    this.told.textContent = unknown
      ? `${port}: nothing is known of that moment`
      : cellText(port, tick.now, tick.ways[row]);
  }
}

function cellText(port, now, { rate, load, queue }) {
  const full = load === null ? "" : `, ${shortText(100 * load)} % busy`;
  return `${port} at ${now.toFixed(1)} s: ${rateText(rate)}${full}, queue ${queue}`;
}
