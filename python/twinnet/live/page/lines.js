// The lines and the queues of a large network, on a canvas below its nodes: elements of SVG that all change at each tick
// would take the browser longer than it has.

import { barHeight, barParts, CLASS_COLOURS, isLosing, loadClass } from "./units.js";

const COLOURS = ["idle", "some", "busy", "full", "open"];
const DASHES = { down: [4, 8], unknown: [1, 5] };
/** Of a line that loses frames. Its ends are flat: round ones of a wide line would fill the gaps. */
const LOSING = [14, 7];
const BAR = 10;

export class Lines {
  /** Below the picture in `svg`; `places` has for each way where its line begins and ends and where its queue stands. */
  constructor(svg, places) {
    this.svg = svg;
    this.places = places;
    this.canvas = document.createElement("canvas");
    this.canvas.id = "lines";
    svg.before(this.canvas);
    this.ways = [];
    this.isDue = false;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#ask());
  }

  /** Shows `ways`, of which those with the numbers `followed` are marked. A line is as wide as `widthOf` says; dashes
   * are `longer` than usual, so that they are seen from afar. */
  show(ways, followed, widthOf, longer) {
    [this.ways, this.followed, this.widthOf, this.longer] = [ways, followed, widthOf, longer];
    this.#ask();
  }

  /** Draws before the next frame, however many ticks come until then. */
  #ask() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.#draw();
    });
  }

  #draw() {
    const { canvas, svg, ways } = this;
    const [left, top, wide, high] = svg.getAttribute("viewBox").split(" ").map(Number);
    const [width, height] = [svg.clientWidth, svg.clientHeight];
    const ratio = devicePixelRatio;
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    // As the SVG is put into its place: as large as fits, in the middle.
    const pixels = Math.min(width / wide, height / high);
    const [right, down] = [(width - pixels * wide) / 2, (height - pixels * high) / 2];
    const scale = pixels * ratio;
    context.setTransform(scale, 0, 0, scale, (right - pixels * left) * ratio, (down - pixels * top) * ratio);
    context.lineCap = "round";
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    this.#stroke(context, this.#followed(), colour("follow"), this.widthOf(null) + 8, []);
    for (const [key, places] of this.#alike()) {
      const [name, width, losing] = key.split(" ");
      const ink = colour(COLOURS.includes(name) ? name : "idle");
      context.lineCap = losing ? "butt" : "round";
      this.#stroke(context, places, ink, Number(width), losing ? LOSING : (DASHES[name] ?? []));
    }
    this.#queues(context, colour);
  }

  #queues(context, colour) {
    const bars = this.ways.flatMap((way, place) => {
      if (way.queue === 0 || this.places[place].isHidden) return [];
      const tall = barHeight(way.queue);
      return [{ ...this.places[place].foot, queue: way.queue, tall, parts: barParts(way, tall) }];
    });
    for (let number = 0; number < CLASS_COLOURS; number += 1) {
      context.fillStyle = colour(`class-${number}`);
      context.beginPath();
      for (const { x, y, parts } of bars) {
        const own = parts.filter((part) => (part.number ?? 0) % CLASS_COLOURS === number);
        for (const { from, tall } of own) context.rect(x - BAR / 2, y - from - tall, BAR, tall);
      }
      context.fill();
    }
    if (this.svg.classList.contains("far")) return;
    context.fillStyle = colour("ink");
    context.font = "14px system-ui, sans-serif";
    context.textAlign = "center";
    for (const { x, y, tall, queue } of bars) context.fillText(String(queue), x, y - tall - 3);
  }

  #followed() {
    return [...this.followed].filter((place) => !this.places[place].isHidden);
  }

  /** The numbers of the ways that have the same colour and nearly the same width: they are drawn at once. */
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

  #stroke(context, places, ink, width, dashes) {
    context.strokeStyle = ink;
    context.lineWidth = width;
    context.setLineDash(dashes.map((one) => one * this.longer));
    context.beginPath();
    for (const place of places) {
      const { from, to } = this.places[place];
      context.moveTo(from.x, from.y);
      context.lineTo(to.x, to.y);
    }
    context.stroke();
  }
}
