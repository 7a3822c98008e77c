// The flow table of one switch, as it is now: entries that are new, and those that count, light up.

import { groupRows } from "./groups.js";
import { Lights, tableRow } from "./tables.js";

const LOOK_MS = 1000;
const MOST_ROWS = 500;
const APART = ["cookie", "duration", "table", "n_packets", "n_bytes", "idle_age", "hard_age", "priority"];

/** A line of a dump of flows as a row. */
export function flowRow(line) {
  const at = line.indexOf("actions=");
  const head = (at < 0 ? line : line.slice(0, at)).split(",").map((one) => one.trim());
  const known = new Map();
  const match = [];
  for (const field of head.filter((one) => one !== "")) {
    const [name, value] = [field.split("=", 1)[0], field.slice(field.indexOf("=") + 1)];
    if (APART.includes(name)) known.set(name, value);
    else match.push(field);
  }
  return {
    table: Number(known.get("table") ?? 0),
    priority: Number(known.get("priority") ?? 32768),
    match: match.join(", "),
    actions: at < 0 ? "" : line.slice(at + "actions=".length).trim(),
    packets: Number(known.get("n_packets") ?? 0),
    bytes: Number(known.get("n_bytes") ?? 0),
  };
}

/** Which of `rows` are new since `before` (rows by their key; `null`: nothing is known), and which have counted. */
export function flowChanges(before, rows) {
  return rows.map((row) => {
    const key = flowKey(row);
    const then = before?.get(key);
    const isNew = before !== null && then === undefined;
    return { ...row, key, isNew, counts: then !== undefined && row.packets > then.packets };
  });
}

/** What tells an entry from others. */
export function flowKey(row) {
  return `${row.table} ${row.priority} ${row.match} ${row.actions}`;
}

export class FlowTable {
  constructor() {
    this.switch = null;
    this.#forget();
    this.asking = false;
    this.at = (id) => document.getElementById(id);
    this.at("flows-close").addEventListener("click", () => this.show(null));
    setInterval(() => this.look(), LOOK_MS);
  }

  /** Shows the table of the switch called `name`; `null`: none. */
  show(name) {
    this.switch = name;
    this.#forget();
    this.at("flows").hidden = name === null;
    this.at("groups").hidden = true;
    this.at("flow-rows").replaceChildren();
    this.at("flows-told").textContent = "";
    if (name === null) return;
    this.at("flows-of").textContent = `Flows of ${name}, now`;
    this.look();
  }

  /** Asks for the table, and shows it. */
  async look() {
    if (this.switch === null || this.asking || document.hidden) return;
    this.asking = true;
    const asked = this.switch;
    try {
      const of = encodeURIComponent(asked);
      const answers = await Promise.all(["flows", "groups"].map((what) => fetch(`${what}/${of}`)));
      const [flows, groups] = await Promise.all(answers.map((answer) => answer.json()));
      if (asked !== this.switch) return;
      if (answers[0].ok) this.#show(flows.map(flowRow));
      else this.at("flows-told").textContent = flows.message;
      // Not every switch tells them: those of Open vSwitch keep theirs.
      if (answers[1].ok) this.#showGroups(groups);
    } catch {
      this.at("flows-told").textContent = "No news of the flows: what you see is from before.";
    } finally {
      this.asking = false;
    }
  }

  #forget() {
    [this.before, this.groups] = [null, null];
    [this.lights, this.groupLights] = [new Lights(), new Lights()];
  }

  #showGroups(told) {
    const rows = this.groupLights.kept(groupRows(told, this.groups), performance.now());
    this.at("groups").hidden = rows.length === 0;
    this.at("group-rows").replaceChildren(...rows.slice(0, MOST_ROWS).map(tableRow));
    this.groups = told;
  }

  #show(rows) {
    const more = rows.length - MOST_ROWS;
    const count = rows.length === 1 ? "1 entry" : `${rows.length} entries`;
    this.at("flows-told").textContent = more > 0 ? `${count}; the first ${MOST_ROWS} are shown` : count;
    const changed = flowChanges(this.before, rows.slice(0, MOST_ROWS));
    this.at("flow-rows").replaceChildren(
      ...this.lights.kept(changed, performance.now()).map((row) => {
        const cells = [row.table, row.priority, row.match || "all", row.actions, row.packets, row.bytes];
        return tableRow({ ...row, cells });
      }),
    );
    this.before = new Map(rows.map((row) => [flowKey(row), row]));
  }
}
