// The lines and the queues of a large network, on a canvas below its nodes: elements of SVG that all change at each
// tick would take the browser longer than it has.

import { painterOn } from "./painter.js";
import { barHeight, barParts, CLASS_COLOURS, isLosing, loadClass } from "./units.js";

const COLOURS = ["idle", "some", "busy", "full", "open"];
const DASHES = { down: [4, 8], unknown: [1, 5] };
/** Of a line that loses frames. Its ends are flat: round ones of a wide line would fill the gaps. */
const LOSING = [14, 7];
const BAR = 10;

export class Lines {
  /** Below the picture in `svg`; `places` has for each way where its line begins and ends and its queue stands. */
  constructor(svg, places) {
    this.svg = svg;
    this.places = places;
    this.canvas = document.createElement("canvas");
    this.canvas.id = "lines";
    svg.before(this.canvas);
    this.ways = [];
    this.isStale = false;
    this.isBusy = false;
    this.numbers = new Float32Array();
    this.paint = painterOn(this.canvas, (canvas, paint) => {
      [this.canvas, this.paint] = [canvas, paint];
      this.#begin();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#ask());
  }

  /** Shows `ways`, of which those with the numbers `followed` are marked. A line is as wide as `widthOf` says; dashes
   * are `longer` than usual, so that they are seen from afar. */
  show(ways, followed, widthOf, longer) {
    [this.ways, this.followed, this.widthOf, this.longer] = [ways, followed, widthOf, longer];
    this.#ask();
  }

  #ask() {
    this.isStale = true;
    if (!this.isBusy) this.#begin();
  }

  #free() {
    this.isBusy = false;
    if (this.isStale) this.#begin();
  }

  /** Paints before the next frame, however many ticks come until then and while it paints. */
  #begin() {
    this.isBusy = true;
    requestAnimationFrame(() => {
      this.isStale = false;
      this.paint(this.#picture(), (numbers) => {
        this.numbers = numbers;
        this.canvas.dataset.painted = "";
        this.#free();
      });
    });
  }

  /** All that is to be painted. */
  #picture() {
    const [left, top, wide, high] = this.svg.getAttribute("viewBox").split(" ").map(Number);
    const { clientWidth: width, clientHeight: height } = this.svg;
    const ratio = devicePixelRatio;
    // As the SVG is put into its place: as large as fits, in the middle.
    const pixels = Math.min(width / wide, height / high);
    const right = ((width - pixels * wide) / 2 - pixels * left) * ratio;
    const down = ((height - pixels * high) / 2 - pixels * top) * ratio;
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const [lines, { bars, told }] = [this.#lines(colour), this.#queues(colour)];
    return {
      width: Math.round(width * ratio),
      height: Math.round(height * ratio),
      place: [pixels * ratio, right, down],
      numbers: this.#numbers(lines, bars),
      lines: lines.map(({ places, ...how }) => ({ ...how, count: places.length })),
      bars: bars.map(({ colour: fill, sides }) => ({ colour: fill, count: sides.length / 4 })),
      told,
      ink: colour("ink"),
    };
  }

  #lines(colour) {
    const followed = [...this.followed].filter((place) => !this.places[place].isHidden);
    const mark = { colour: colour("follow"), width: this.widthOf(null) + 8, dashes: [], cap: "round" };
    const lines = [{ ...mark, places: followed }];
    for (const [key, places] of this.#alike()) {
      const [name, width, losing] = key.split(" ");
      const dashes = losing ? LOSING : (DASHES[name] ?? []);
      lines.push({
        colour: colour(COLOURS.includes(name) ? name : "idle"),
        width: Number(width),
        dashes: dashes.map((one) => one * this.longer),
        // Lines begin and end below nodes, where nobody sees that their ends are flat.
        cap: name in DASHES && !losing ? "round" : "butt",
        places,
      });
    }
    return lines;
  }

  /** Where lines begin and end, and the sides of bars: four numbers of each, in those of before if they suffice. */
  #numbers(lines, bars) {
    const all = lines.reduce((sum, { places }) => sum + 4 * places.length, 0);
    const needed = bars.reduce((sum, { sides }) => sum + sides.length, all);
    const numbers = this.numbers.length < needed ? new Float32Array(2 * needed) : this.numbers;
    let at = 0;
    for (const { places } of lines) {
      for (const place of places) {
        const { from, to } = this.places[place];
        for (const one of [from.x, from.y, to.x, to.y]) numbers[at++] = one;
      }
    }
    for (const { sides } of bars) {
      numbers.set(sides, at);
      at += sides.length;
    }
    return numbers;
  }

  #queues(colour) {
    const queues = this.ways.flatMap((way, place) => {
      if (way.queue === 0 || this.places[place].isHidden) return [];
      const tall = barHeight(way.queue);
      return [{ ...this.places[place].foot, queue: way.queue, tall, parts: barParts(way, tall) }];
    });
    const sides = [...Array(CLASS_COLOURS)].map(() => []);
    for (const { x, y, parts } of queues) {
      for (const { from, tall, number } of parts) {
        sides[(number ?? 0) % CLASS_COLOURS].push(x - BAR / 2, y - from - tall, BAR, tall);
      }
    }
    const bars = sides.map((some, number) => ({ colour: colour(`class-${number}`), sides: some }));
    const isFar = this.svg.classList.contains("far");
    const told = isFar ? [] : queues.map(({ x, y, tall, queue }) => ({ text: String(queue), x, y: y - tall - 3 }));
    return { bars, told };
  }

  /** The numbers of the ways that have the same colour and nearly the same width. */
  #alike() {
    const found = new Map();
    this.ways.forEach((way, place) => {
      if (this.places[place].isHidden) return;
      const key = `${loadClass(way)} ${Math.round(this.widthOf(way))}${isLosing(way) ? " losing" : ""}`;
      if (found.has(key)) found.get(key).push(place);
      else found.set(key, [place]);
    });
    return found;
  }
}
