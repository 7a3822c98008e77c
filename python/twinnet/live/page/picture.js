// The network as SVG: drawn once; then only widths, colours, bars and numbers change.

import { Controllers } from "./controllers.js";
import { drag } from "./drag.js";
import { element } from "./elements.js";
import { covers, foldedWays, foldsOf, summed } from "./folds.js";
import { chosenPlaces, labelChoices } from "./labels.js";
import { Lines } from "./lines.js";
import { barHeight, barParts, CLASS_COLOURS, isLosing, loadClass, rateText } from "./units.js";

const CELL = 120;
const MARGIN = 70;
const APART = 5;
const MOST_WITH_NUMBERS = 40;
/** True if a network is too large for an element of SVG for each line: they are painted on a canvas. */
export const isLarge = ({ links }) => links.length > MOST_WITH_NUMBERS;
/** What a way does before anything is known of it. */
const IDLE = { up: true, rate: 0, load: 0, queue: 0, drops: 0 };
const DOUBLE_CLICK_MS = 300;
const SINGLE = { hosts: "host", switches: "switch" };
/** With fewer pixels for a unit no text can be read, and lines are drawn thicker. */
const LEAST_READABLE = 0.35;

export class Picture {
  /** Draws `network` for `svg`, which shows it after `begin`; `choose` is called with the number of a link that is
   * clicked, and whether Shift was held. `opener` gives what a click on a node does, in words and as a function, and a
   * function for a double click, if it does something else; nothing for a node that cannot be clicked. */
  constructor(svg, network, choose, opener) {
    this.network = network;
    this.places = new Map(network.nodes.map((one) => [one.name, { x: one.x * CELL, y: one.y * CELL }]));
    this.svg = svg;
    this.drawing = document.createDocumentFragment();
    this.controllers = new Controllers(network.controllers ?? [], CELL);
    this.controllers.put(this.places);
    svg.setAttribute("viewBox", this.bounds.join(" "));
    this.withNumbers = !isLarge(network);
    this.ways = [];
    this.shown = network.links.flatMap(() => [IDLE, IDLE]);
    this.isFar = false;
    this.thicker = 1;
    this.followed = new Set();
    this.links = [];
    this.nodes = [];
    this.lines = this.withNumbers ? null : new Lines(svg, this.ways);
    this.above = element("g");
    /** Are told when a node was dragged: its name and its place in cells; and when the size of the picture changes. */
    this.onPlace = () => {};
    this.onBounds = () => {};
    const times = new Map();
    network.links.forEach((link, number) => {
      const pair = [link.a, link.b].sort().join("\n");
      const nth = times.get(pair) ?? 0;
      times.set(pair, nth + 1);
      const shift = Math.ceil(nth / 2) * 6 * APART * (nth % 2 ? 1 : -1) * (link.a > link.b ? -1 : 1);
      const group = this.#link([link.a, link.b], shift, `${link.a_port} – ${link.b_port}`);
      const words = `link of ${link.a_port} and ${link.b_port}: show curves`;
      asButton(group, words, (event) => choose(number, event.shiftKey));
    });
    this.folds = foldsOf(network).map((fold) => this.#fold(fold));
    this.drawing.append(this.controllers.drawn);
    for (const node of network.nodes) {
      const drawn = nodeDrawn(node);
      const [words, open, openTwice] = opener(node) ?? [];
      if (words !== undefined) {
        drawn.classList.add("opens");
        asButton(drawn, words, open, openTwice);
      }
      drawn.addEventListener("pointerdown", (event) => this.#drag(event, node.name));
      this.drawing.append(drawn);
      this.nodes.push([node, drawn]);
    }
    this.drawn = new Map(this.nodes.map(([{ name }, drawn]) => [name, drawn]));
    for (const fold of this.folds) {
      this.drawing.append(fold.handle);
      this.drawn.set(fold, fold.node);
    }
    for (const { way, words } of network.filled ?? []) this.#markFilled(way, words);
    for (const name of [...this.drawn.keys()]) this.#putNode(name);
    this.links.forEach((_, number) => this.#putLink(number));
    if (this.lines === null) this.#append();
    this.foldAll(false);
    // On paper all of it is vectors.
    window.addEventListener("beforeprint", () => this.#intoSvg());
    window.addEventListener("afterprint", () => this.#outOfSvg());
  }

  /** Shows what is drawn. With the size of the picture known before, the browser lays out only what is seen then. */
  begin() {
    this.svg.append(this.drawing);
    this.drawing = this.svg;
  }

  /** Where the picture begins, and how large it is. */
  get bounds() {
    const all = [...this.places.values()];
    const [right, bottom] = [Math.max(...all.map((one) => one.x)), Math.max(...all.map((one) => one.y))];
    const above = this.controllers.height;
    const wide = Math.max(right, this.controllers.right);
    return [-MARGIN, -MARGIN - above, wide + 2 * MARGIN, bottom + 2 * MARGIN + above];
  }

  /** Shows the controllers, or leaves them out. */
  showControllers(isShown) {
    this.controllers.isShown = isShown;
    show(this.controllers.drawn, isShown);
    this.onBounds(this.bounds);
  }

  /** A triangle at the port that the plan's traffic fills. */
  #markFilled(place, words) {
    const mark = element("path", { class: "filled", d: "M-5 -6 L7 0 L-5 6 z" });
    mark.append(element("title", {}, words));
    this.links[place >> 1].group.append(mark);
    this.ways[place].mark = mark;
  }

  /** Puts what changes with each tick into the SVG. */
  #append() {
    this.ways.forEach(({ drawn }, place) => drawn && this.links[place >> 1].group.append(drawn));
    this.drawing.append(this.above);
  }

  /** What is drawn of a link between two ends, `shift` beside the straight line between them. */
  #link(ends, shift, title) {
    const group = element("g", { class: "link" });
    const hit = element("line", { class: "hit" });
    group.append(element("title", {}, title), hit);
    for (let turned = 0; turned < 2; turned += 1) {
      const way = {};
      this.ways.push(way);
      if (this.lines === null) this.#makeWay(way);
    }
    this.links.push({ ends, shift, group, hit });
    this.drawing.append(group);
    return group;
  }

  /** Puts the link `number` between its ends. */
  #putLink(number) {
    const { ends, shift, hit } = this.links[number];
    const [a, b] = ends.map((end) => this.places.get(end));
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const along = { x: (b.x - a.x) / length, y: (b.y - a.y) / length };
    const aside = { x: -along.y, y: along.x };
    const at = (way, off) => ({ x: a.x + along.x * way + aside.x * off, y: a.y + along.y * way + aside.y * off });
    putLine(hit, at(0, shift), at(length, shift));
    [APART, -APART].forEach((side, turned) => {
      const way = this.ways[2 * number + turned];
      const [start, end] = [at(0, shift + side), at(length, shift + side)];
      const near = Math.min(0.3 * length, 42);
      const from = turned === 0 ? near : length - near;
      const foot = at(from, shift + 2.6 * side);
      const labels = labelChoices(...(turned === 0 ? [start, end] : [end, start]));
      Object.assign(way, { foot, from: start, to: end, labels });
      if (this.lines === null) this.#putWay(way);
      const angle = (Math.atan2(along.y, along.x) * 180) / Math.PI + 180 * turned;
      const port = at(from, shift + side);
      if (way.mark) put(way.mark, { transform: `translate(${port.x} ${port.y}) rotate(${angle})` });
    });
  }

  /** Makes what changes with each tick of one way. */
  #makeWay(way) {
    way.drawn = element("line", { class: "way idle" });
    way.bar = element("rect", { class: "bar", width: 10, height: 0 });
    way.parts = element("g");
    way.frames = element("text", { class: "told", "text-anchor": "middle" });
    way.rate = element("text", { class: "told" });
    this.above.append(way.bar, way.parts, way.frames, way.rate);
  }

  #putWay({ drawn, bar, frames, foot, from, to }) {
    putLine(drawn, from, to);
    put(bar, { x: foot.x - 5, y: foot.y });
    put(frames, { x: foot.x });
  }

  /** Puts the numbers of the ways that are shown beside each other. */
  #putLabels() {
    if (!this.withNumbers) return;
    const shown = this.ways.filter(({ isHidden }) => !isHidden);
    const nodes = [...this.drawn].filter(([name, drawn]) => (name.isShown ?? true) && !drawn.hasAttribute("display"));
    const rooms = nodes.map(([name]) => {
      const { x, y } = this.places.get(name);
      return [x - 30, y - 15, x + 30, y + 30];
    });
    const bars = shown.map(({ foot: { x, y } }) => [x - 8, y - 24, x + 8, y]);
    const chosen = chosenPlaces(shown.map(({ labels }) => labels), [...rooms, ...bars]);
    shown.forEach(({ rate }, number) => put(rate, chosen[number]));
  }

  /** What is drawn for a fold: a node with the number of what is below, a link to it, and the handle at its switch. */
  #fold(told) {
    const { hub, below, switches } = told;
    const words = [[below.length - switches, "hosts"], [switches, "switches"]]
      .flatMap(([count, kind]) => (count === 0 ? [] : [`${count} ${count === 1 ? SINGLE[kind] : kind}`]))
      .join(", ");
    const [name, note] = switches > 0 ? [`${below.length} nodes`, words] : [words, ""];
    const node = nodeDrawn({ name, kind: "hosts", note });
    const fold = { ...told, words, node, isFolded: false, ways: foldedWays(told, this.network.links) };
    node.classList.add("opens");
    asButton(node, `${words} of ${hub}: unfold`, () => this.fold(fold, false));
    fold.handle = element("g", { class: "fold" });
    fold.sign = element("text", { "text-anchor": "middle", y: 4 });
    fold.handle.append(element("circle", { r: 9 }), fold.sign);
    asButton(fold.handle, "", () => this.fold(fold, !fold.isFolded));
    const places = below.map((name) => this.places.get(name));
    const mean = (of) => places.reduce((sum, place) => sum + of(place), 0) / places.length;
    this.places.set(fold, { x: mean(({ x }) => x), y: mean(({ y }) => y) });
    fold.number = this.links.length;
    fold.group = this.#link([hub, fold], 0, `${hub} – ${words}`);
    return fold;
  }

  /** Folds what is below a fold into one node, or unfolds it. */
  fold(fold, isFolded) {
    fold.isFolded = isFolded;
    this.#showFolds();
    this.#arranged();
  }

  /** The folds of hosts alone. */
  get hostFolds() {
    return this.folds.filter(({ switches }) => switches === 0);
  }

  /** Folds all hosts, or unfolds all that is folded. */
  foldAll(isFolded) {
    for (const fold of isFolded ? this.hostFolds : this.folds) fold.isFolded = isFolded;
    this.#showFolds();
    this.#arranged();
  }

  #showFolds() {
    const folded = this.folds.filter(({ isFolded }) => isFolded);
    const hidden = new Set(folded.flatMap(({ below }) => below));
    const links = new Set(folded.flatMap(({ links: numbers }) => numbers));
    for (const [{ name }, drawn] of this.nodes) show(drawn, !hidden.has(name));
    this.network.links.forEach((_, number) => this.#showLink(number, !links.has(number)));
    for (const fold of this.folds) {
      const isCovered = folded.some((other) => covers(other, fold));
      this.#showFold(fold, isCovered);
    }
  }

  /** Shows a fold as it is, unless it is in another that is folded. */
  #showFold(fold, isCovered) {
    const { isFolded, words, hub, handle } = fold;
    fold.isShown = isFolded && !isCovered;
    fold.sign.textContent = isFolded ? "+" : "−";
    handle.setAttribute("aria-label", `${words} of ${hub}: ${isFolded ? "unfold" : "fold"}`);
    handle.setAttribute("aria-expanded", String(!isFolded));
    show(handle, !isCovered);
    // What is not shown of a fold is not in the picture.
    const [parts, first] = [this.#above(fold.number), this.nodes[0][1]];
    for (const way of this.#waysOf(fold.number)) way.isHidden = !fold.isShown;
    if (fold.isShown) {
      first.before(fold.group, fold.node);
      this.above.append(...parts);
    } else for (const part of [fold.group, fold.node, ...parts]) part.remove();
  }

  /** Something stands elsewhere. */
  #arranged() {
    this.#putLabels();
    this.update(this.shown);
  }

  #showLink(number, isShown) {
    show(this.links[number].group, isShown);
    for (const way of this.#waysOf(number)) way.isHidden = !isShown;
    for (const part of this.#above(number)) show(part, isShown);
  }

  #waysOf(number) {
    return this.ways.slice(2 * number, 2 * number + 2);
  }

  /** What a link has above the nodes. */
  #above(number) {
    const ways = this.lines === null ? this.#waysOf(number) : [];
    return ways.flatMap(({ bar, parts, frames, rate }) => [bar, parts, frames, rate]);
  }

  #putNode(name) {
    const { x, y } = this.places.get(name);
    put(this.drawn.get(name), { transform: `translate(${x} ${y})` });
    // All that is below a switch folds at its left, and its hosts alone at its right.
    for (const { hub, handle, switches } of this.folds) {
      if (hub === name) put(handle, { transform: `translate(${x + (switches > 0 ? -34 : 34)} ${y - 15})` });
    }
  }

  /** Moves a node, within a cell beyond what there is. */
  #move(name, { x, y }) {
    const [, , wide, high] = this.bounds;
    const most = Math.max(wide, high, 4 * CELL);
    this.places.set(name, { x: Math.min(Math.max(0, x), most), y: Math.min(Math.max(0, y), most) });
    this.#putNode(name);
    this.controllers.put(this.places);
    this.links.forEach(({ ends }, number) => {
      if (ends.includes(name)) this.#putLink(number);
    });
    this.#arranged();
  }

  #drag(begin, name) {
    if (begin.button !== 0) return;
    // The picture itself stays where it is.
    begin.stopPropagation();
    const from = this.places.get(name);
    const pixels = this.svg.getScreenCTM().a;
    drag(
      begin,
      (x, y) => this.#move(name, { x: from.x + x / pixels, y: from.y + y / pixels }),
      () => {
        const { x, y } = this.places.get(name);
        this.onBounds(this.bounds);
        this.onPlace(name, Number((x / CELL).toFixed(3)), Number((y / CELL).toFixed(3)));
      },
    );
  }

  /** Shows `ways`, there and back of each link, as they are now. */
  update(ways) {
    this.shown = ways;
    const most = ways.reduce((sum, one) => Math.max(sum, one.line ?? one.rate), 1);
    this.widthOf = (way) => this.thicker * (1.5 + 7 * Math.sqrt(Math.min(1, (way?.rate ?? 0) / most)));
    if (this.lines === null) this.#update();
    else this.lines.show(this.#all, this.followed, this.widthOf, this.thicker);
  }

  /** The ways that are shown, and behind them those of the folds. */
  get #all() {
    const sums = this.folds.flatMap(({ isFolded, ways }) =>
      ways.map((places) => summed(isFolded ? places.map((place) => this.shown[place]) : [])),
    );
    return [...this.shown, ...sums];
  }

  /** Has `work` find all of the picture in its SVG: of a large network, what changes is there meanwhile alone. */
  whole(work) {
    this.#intoSvg();
    work();
    this.#outOfSvg();
  }

  #intoSvg() {
    if (this.lines === null || this.above.isConnected) return;
    for (const way of this.ways.filter(({ isHidden }) => !isHidden)) {
      this.#makeWay(way);
      this.#putWay(way);
    }
    this.#append();
    this.#update();
  }

  #outOfSvg() {
    if (this.lines === null) return;
    for (const way of this.ways) {
      way.drawn?.remove();
      delete way.drawn;
    }
    this.above.replaceChildren();
    this.above.remove();
  }

  #update() {
    this.#all.forEach((way, place) => {
      const { drawn, bar, parts, frames, rate, foot } = this.ways[place];
      if (drawn === undefined) return;
      const marks = [isLosing(way) ? " losing" : "", this.followed.has(place) ? " followed" : ""];
      drawn.setAttribute("class", `way ${loadClass(way)}${marks.join("")}`);
      drawn.setAttribute("stroke-width", this.widthOf(way).toFixed(1));
      const height = barHeight(way.queue);
      bar.setAttribute("height", height.toFixed(1));
      bar.setAttribute("y", (foot.y - height).toFixed(1));
      if (way.classes !== undefined || parts.hasChildNodes()) {
        parts.replaceChildren(...barParts(way, height).map((part) => barPart(part, foot)));
      }
      frames.setAttribute("y", (foot.y - height - 3).toFixed(1));
      frames.textContent = way.queue > 0 && !this.isFar ? String(way.queue) : "";
      if (this.withNumbers) rate.textContent = way.rate > 0 ? rateText(way.rate) : "";
    });
  }

  /** A unit of the picture has so many pixels: from afar lines are thicker, and there is no text. */
  scale(pixels) {
    this.isFar = pixels < LEAST_READABLE;
    this.svg.classList.toggle("far", this.isFar);
    this.thicker = Math.max(1, LEAST_READABLE / pixels);
    this.update(this.shown);
  }

  /** Marks the nodes whose name or note has `words` in it, and returns how many they are. */
  find(words) {
    const wanted = words.toLowerCase();
    let count = 0;
    for (const [{ name, note }, drawn] of this.nodes) {
      const found = wanted !== "" && `${name}\n${note}`.toLowerCase().includes(wanted);
      drawn.classList.toggle("found", found);
      count += Number(found);
    }
    for (const { below, node } of this.folds) {
      node.classList.toggle("found", below.some((name) => this.drawn.get(name).classList.contains("found")));
    }
    return count;
  }

  /** Marks the ways with these numbers: a packet goes along them. */
  follow(numbers) {
    this.followed = new Set(numbers);
    this.ways.forEach(({ drawn }, place) => drawn?.classList.toggle("followed", this.followed.has(place)));
    this.update(this.shown);
  }

  /** Marks the links whose curves are shown. */
  mark(chosen) {
    this.links.forEach(({ group }, number) => group.classList.toggle("chosen", chosen.includes(number)));
  }
}

/** Lets `group` be clicked, or chosen by the keyboard; with `actTwice` a click waits whether it becomes double. */
function asButton(group, name, act, actTwice = null) {
  put(group, { tabindex: 0, role: "button", "aria-label": name });
  let waiting = null;
  group.addEventListener("click", (event) => {
    clearTimeout(waiting);
    if (actTwice === null) act(event);
    else waiting = setTimeout(act, DOUBLE_CLICK_MS);
  });
  group.addEventListener("dblclick", () => {
    clearTimeout(waiting);
    actTwice?.();
  });
  group.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      act(event);
    }
  });
}

/** A part of a queue's bar, in the colour of its class. */
function barPart({ from, tall, number }, foot) {
  const y = (foot.y - from - tall).toFixed(1);
  const place = { x: foot.x - 5, y, width: 10, height: tall.toFixed(1) };
  const kind = number === null ? "" : ` class-${number % CLASS_COLOURS}`;
  const part = element("rect", { class: `bar part${kind}`, ...place });
  if (number !== null) part.append(element("title", {}, `class ${number}`));
  return part;
}

function put(drawn, attributes) {
  for (const [key, value] of Object.entries(attributes)) drawn.setAttribute(key, value);
}

function putLine(drawn, from, to) {
  put(drawn, { x1: from.x, y1: from.y, x2: to.x, y2: to.y });
}

function show(drawn, isShown) {
  if (isShown) drawn.removeAttribute("display");
  else drawn.setAttribute("display", "none");
}

function nodeDrawn(node) {
  const inside = node.kind === "switch" || node.kind === "router";
  const width = Math.min(CELL - 16, Math.max(inside ? 60 : 48, 10 * node.name.length + 14));
  const group = element("g", { class: `node ${node.kind}` });
  const corners = { rx: inside ? 3 : 15 };
  group.append(element("title", {}, node.kind === "hosts" ? node.name : `${node.kind} ${node.name}`));
  group.append(element("rect", { x: -width / 2, y: -15, width, height: 30, ...corners }));
  const name = element("text", {}, node.name);
  if (10 * node.name.length + 14 > CELL - 16) {
    name.setAttribute("textLength", width - 8);
    name.setAttribute("lengthAdjust", "spacingAndGlyphs");
  }
  group.append(name);
  if (node.note) group.append(element("text", { class: "note", y: 25 }, node.note));
  return group;
}
