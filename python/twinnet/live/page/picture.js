// The network as SVG: drawn once; then only widths, colours, bars and numbers change.

import { barHeight, loadClass, rateText } from "./units.js";

const CELL = 120;
const MARGIN = 70;
const APART = 5;
const MOST_WITH_NUMBERS = 40;

/** A new element of SVG with attributes and, where given, a text, which is never markup. */
export function element(name, attributes = {}, text = null) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

export class Picture {
  /** Draws `network` into `svg`; `choose` is called with the number of a link that is clicked. */
  constructor(svg, network, choose) {
    const places = new Map(network.nodes.map((one) => [one.name, { x: one.x * CELL, y: one.y * CELL }]));
    const all = [...places.values()];
    const right = Math.max(...all.map((one) => one.x));
    const bottom = Math.max(...all.map((one) => one.y));
    svg.setAttribute("viewBox", `${-MARGIN} ${-MARGIN} ${right + 2 * MARGIN} ${bottom + 2 * MARGIN}`);
    this.withNumbers = network.links.length <= MOST_WITH_NUMBERS;
    this.ways = [];
    this.groups = [];
    const above = element("g");
    const times = new Map();
    network.links.forEach((link, number) => {
      const pair = [link.a, link.b].sort().join("\n");
      const nth = times.get(pair) ?? 0;
      times.set(pair, nth + 1);
      const shift = Math.ceil(nth / 2) * 6 * APART * (nth % 2 ? 1 : -1);
      const turned = link.a > link.b ? -1 : 1;
      const ends = [places.get(link.a), places.get(link.b)];
      const group = this.#link(link, number, ends, shift * turned, above, choose);
      svg.append(group);
      this.groups.push(group);
    });
    for (const node of network.nodes) svg.append(nodeDrawn(node, places.get(node.name)));
    svg.append(above);
  }

  #link(link, number, [a, b], shift, above, choose) {
    const name = `link of ${link.a_port} and ${link.b_port}: show curves`;
    const group = element("g", { class: "link", tabindex: 0, role: "button", "aria-label": name });
    group.append(element("title", {}, `${link.a_port} – ${link.b_port}`));
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const along = { x: (b.x - a.x) / length, y: (b.y - a.y) / length };
    const aside = { x: -along.y, y: along.x };
    const at = (way, off) => ({ x: a.x + along.x * way + aside.x * off, y: a.y + along.y * way + aside.y * off });
    group.append(line(at(0, shift), at(length, shift), "hit"));
    for (const [side, from] of [[APART, 0], [-APART, length]]) {
      const drawn = line(at(0, shift + side), at(length, shift + side), "way idle");
      const near = from === 0 ? Math.min(0.3 * length, 42) : length - Math.min(0.3 * length, 42);
      const foot = at(near, shift + 2.6 * side);
      const bar = element("rect", { class: "bar", x: foot.x - 5, y: foot.y, width: 10, height: 0 });
      const frames = element("text", { class: "told", x: foot.x, "text-anchor": "middle" });
      const rate = element("text", { class: "told", ...labelPlace(at(length / 2, shift + 2.2 * side), aside, side) });
      group.append(drawn);
      above.append(bar, frames, rate);
      this.ways.push({ drawn, bar, frames, rate, foot: foot.y });
    }
    group.addEventListener("click", () => choose(number));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        choose(number);
      }
    });
    return group;
  }

  /** Shows `ways`, there and back of each link, as they are now. */
  update(ways) {
    const most = Math.max(1, ...ways.map((one) => one.line ?? one.rate));
    ways.forEach((way, place) => {
      const { drawn, bar, frames, rate, foot } = this.ways[place];
      drawn.setAttribute("class", `way ${loadClass(way)}`);
      drawn.setAttribute("stroke-width", (1.5 + 7 * Math.sqrt(Math.min(1, way.rate / most))).toFixed(1));
      const height = barHeight(way.queue);
      bar.setAttribute("height", height.toFixed(1));
      bar.setAttribute("y", (foot - height).toFixed(1));
      frames.setAttribute("y", (foot - height - 3).toFixed(1));
      frames.textContent = way.queue > 0 ? String(way.queue) : "";
      if (this.withNumbers) rate.textContent = way.rate > 0 ? rateText(way.rate) : "";
    });
  }

  /** Marks the link whose curves are shown; `null`: none. */
  mark(chosen) {
    this.groups.forEach((group, number) => group.classList.toggle("chosen", number === chosen));
  }
}

/** Where the number of a way stands: away from the other way, so that neither crosses a line of the two. */
function labelPlace(foot, aside, side) {
  const [right, down] = [aside.x * Math.sign(side), aside.y * Math.sign(side)];
  if (Math.abs(down) > 0.8) return { x: foot.x, y: foot.y + (down > 0 ? 12 : -2), "text-anchor": "middle" };
  return { x: foot.x, y: foot.y + 5, "text-anchor": right > 0 ? "start" : "end" };
}

function line(from, to, name) {
  return element("line", { class: name, x1: from.x, y1: from.y, x2: to.x, y2: to.y });
}

function nodeDrawn(node, { x, y }) {
  const inside = node.kind === "switch" || node.kind === "router";
  const width = Math.min(CELL - 16, Math.max(inside ? 60 : 48, 10 * node.name.length + 14));
  const group = element("g", { class: "node" });
  const corners = { rx: inside ? 3 : 15 };
  group.append(element("title", {}, `${node.kind} ${node.name}`));
  group.append(element("rect", { x: x - width / 2, y: y - 15, width, height: 30, ...corners }));
  const name = element("text", { x, y }, node.name);
  if (10 * node.name.length + 14 > CELL - 16) {
    name.setAttribute("textLength", width - 8);
    name.setAttribute("lengthAdjust", "spacingAndGlyphs");
  }
  group.append(name);
  if (node.note) group.append(element("text", { class: "note", x, y: y + 25 }, node.note));
  return group;
}
