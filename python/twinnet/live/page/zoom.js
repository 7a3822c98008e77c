// Looking closer at the picture: with buttons, keys, the wheel while Ctrl is held, and the pointer that drags it.

import { drag } from "./drag.js";

const STEP = 1.4;
const CLOSEST = 240;

/** The part `box` of a picture, seen `factor` times as close, with the place `x`, `y` where it was; within `whole`. */
export function closer(box, factor, [x, y], whole) {
  const wide = Math.min(whole[2], Math.max(CLOSEST, box[2] / factor));
  const share = wide / box[2];
  const high = box[3] * share;
  return within([x - (x - box[0]) * share, y - (y - box[1]) * share, wide, high], whole);
}

/** `box`, moved into `whole`. */
export function within([x, y, wide, high], whole) {
  const put = (at, length, least, most) => Math.min(Math.max(at, least), Math.max(least, least + most - length));
  return [put(x, wide, whole[0], whole[2]), put(y, high, whole[1], whole[3]), wide, high];
}

export class Zoom {
  /** Of the picture in `svg`; `drawn` is told how many pixels a unit of it has whenever that changes. */
  constructor(svg, drawn) {
    this.svg = svg;
    this.drawn = drawn;
    this.whole = svg.getAttribute("viewBox").split(" ").map(Number);
    this.box = this.whole;
    const part = (id) => document.getElementById(id);
    part("closer").addEventListener("click", () => this.#closer(STEP));
    part("farther").addEventListener("click", () => this.#closer(1 / STEP));
    part("whole").addEventListener("click", () => this.#put(this.whole));
    svg.addEventListener("wheel", (event) => {
      // Without Ctrl the wheel scrolls the page.
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.#closer(STEP ** (-Math.sign(event.deltaY) / 2), this.#place(event));
    });
    svg.addEventListener("keydown", (event) => this.#key(event));
    svg.addEventListener("pointerdown", (event) => this.#drag(event));
    this.#put(this.box);
    new ResizeObserver(() => this.#put(this.box)).observe(svg);
  }

  /** The picture has become another size. */
  fit(whole) {
    const wasWhole = this.box === this.whole;
    this.whole = whole;
    this.#put(wasWhole ? whole : within(this.box, whole));
  }

  get #pixels() {
    return Math.min(this.svg.clientWidth / this.box[2], this.svg.clientHeight / this.box[3]);
  }

  #put(box) {
    this.box = box;
    const told = box.map((one) => one.toFixed(1)).join(" ");
    if (this.svg.getAttribute("viewBox") !== told) this.svg.setAttribute("viewBox", told);
    this.drawn(this.#pixels);
  }

  #closer(factor, place = [this.box[0] + this.box[2] / 2, this.box[1] + this.box[3] / 2]) {
    this.#put(closer(this.box, factor, place, this.whole));
  }

  /** Where the pointer is, in units of the picture. */
  #place({ clientX, clientY }) {
    const point = new DOMPoint(clientX, clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    return [point.x, point.y];
  }

  #key(event) {
    const [x, y, wide, high] = this.box;
    const aside = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === "+") this.#closer(STEP);
    else if (event.key === "-") this.#closer(1 / STEP);
    else if (event.key === "0") this.#put(this.whole);
    else if (aside !== undefined) {
      this.#put(within([x + (aside[0] * wide) / 8, y + (aside[1] * high) / 8, wide, high], this.whole));
    } else return;
    event.preventDefault();
  }

  #drag(begin) {
    if (begin.button !== 0 || this.box === this.whole) return;
    const [from, pixels] = [this.box, this.#pixels];
    drag(begin, (x, y) => {
      this.#put(within([from[0] - x / pixels, from[1] - y / pixels, from[2], from[3]], this.whole));
    });
  }
}
