// Controllers above the network, each with a line to its switches.

import { element } from "./elements.js";

const BOX = 30;

export class Controllers {
  /** Of `told`: of each its target and the names of its switches. A row of the picture is `cell` high. */
  constructor(told, cell) {
    this.cell = cell;
    this.isEmpty = told.length === 0;
    this.isShown = !this.isEmpty;
    this.drawn = element("g");
    this.all = told.map(({ target, switches }) => {
      const wide = Math.max(60, 9 * target.length + 14);
      const node = element("g", { class: "node controller", role: "img" });
      const [title, state] = [element("title"), element("text", { class: "note", y: -24 })];
      node.append(title, element("rect", { x: -wide / 2, y: -BOX / 2, width: wide, height: BOX, rx: 8 }));
      node.append(element("text", {}, target), state);
      const lines = switches.map(() => element("line", { class: "control" }));
      return { target, switches, wide, node, title, state, lines };
    });
    this.drawn.append(...this.all.flatMap(({ lines }) => lines), ...this.all.map(({ node }) => node));
    this.update([]);
  }

  /** How much the picture is higher for them. */
  get height() {
    return this.isShown ? this.cell : 0;
  }

  /** Where the last of them stands, without what is to its right. */
  get right() {
    return this.isShown ? Math.max(...this.all.map(({ x, wide }) => x + wide / 2 - this.cell / 2)) : 0;
  }

  /** Puts each above the middle of its switches, whose `places` may have changed, and beside the one before. */
  put(places) {
    const middle = ({ switches }) => switches.reduce((sum, name) => sum + places.get(name).x, 0) / switches.length;
    let free = 0;
    for (const one of this.all.toSorted((some, others) => middle(some) - middle(others))) {
      one.x = Math.max(middle(one), free + one.wide / 2);
      free = one.x + one.wide / 2 + this.cell / 4;
      one.node.setAttribute("transform", `translate(${one.x} ${-this.cell})`);
      one.lines.forEach((line, nth) => {
        const { x, y } = places.get(one.switches[nth]);
        const ends = { x1: one.x, y1: BOX / 2 - this.cell, x2: x, y2: y };
        for (const [key, value] of Object.entries(ends)) line.setAttribute(key, value);
      });
    }
  }

  /** Shows of each controller which of its switches are connected. */
  update(connected) {
    this.all.forEach(({ target, lines, node, title, state }, place) => {
      const told = connected[place];
      const count = told?.filter(Boolean).length;
      const text = told === undefined ? "" : `${count} of ${told.length} connected`;
      if (state.textContent !== text || title.textContent === "") {
        state.textContent = text;
        title.textContent = `controller ${target}${text && `: ${text}`}`;
        node.setAttribute("aria-label", title.textContent);
      }
      node.classList.toggle("apart", count === 0);
      lines.forEach((line, nth) => line.classList.toggle("apart", told?.[nth] === false));
    });
  }
}
