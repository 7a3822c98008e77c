// What runs in the lab, and its controllers: tables that are asked for while they are open.

import { rateText, shortText, sizeText } from "./units.js";

const LOOK_MS = 1000;
/** After an answer that took long the next look is later: the lab answers a tenth of the time at most. */
const PATIENCE = 10;
const MOST_ROWS = 200;
/** The places of a flow's ends and of its state in its row. */
const [ENDS, STATE] = [2, 3];

/** How long a row that is new stays lit: the next look alone may come a moment after this one. */
const LIT_MS = 3000;

/** Keeps rows that are new lit for a while. */
export class Lights {
  constructor() {
    this.since = new Map();
  }

  /** `rows` (each with its `key`), as new as they are at `now_ms` (milliseconds of the page). */
  kept(rows, now_ms) {
    const since = new Map();
    for (const { key, isNew } of rows) {
      const begun = isNew ? now_ms : this.since.get(key);
      if (begun !== undefined && now_ms - begun < LIT_MS) since.set(key, begun);
    }
    this.since = since;
    return rows.map((row) => ({ ...row, isNew: since.has(row.key) }));
  }
}

/** A row of a table of `cells`; it lights up if it is new or has counted. */
export function tableRow({ cells, isNew, counts }) {
  const made = document.createElement("tr");
  if (isNew) made.className = "new";
  else if (counts) made.className = "counts";
  for (const value of cells) made.insertCell().textContent = String(value);
  return made;
}

const known = (value, text) => (value === null || value === undefined ? "–" : text(value));

/** Rows of traffic from two looks at it; `before` is null at the first. */
export function trafficRows(told, before) {
  const elapsed = before === null ? 0 : told.now_s - before.now_s;
  const then = new Map((before?.flows ?? []).map((flow) => [flow.key, flow]));
  const programs = new Map((before?.programs ?? []).map((one) => [one.job, one]));
  return [
    ...told.flows.map((flow) => {
      const earlier = then.get(flow.key);
      const more = earlier === undefined || flow.bytes === null ? null : flow.bytes - earlier.bytes;
      const cells = [
        flow.host,
        flow.what,
        flow.ends,
        flow.finished ? "finished" : "runs",
        more === null || elapsed <= 0 ? "–" : rateText((more * 8) / elapsed),
        known(flow.lost, String),
        known(flow.rtt_ms, (value) => `${shortText(value)} ms`),
        known(flow.window, String),
      ];
      const isNew = before !== null && earlier === undefined;
      const stop = flow.finished ? null : { act: "stop app", app: flow.app };
      return { key: `flow ${flow.key}`, cells, counts: more > 0, isNew, stop, follow: flow.follow ?? null };
    }),
    ...told.programs.map(({ host, what, state, job }) => ({
      key: `program ${job}`,
      cells: [host, "program", what, state === "running" ? "runs" : state, "–", "–", "–", "–"],
      counts: false,
      isNew: before !== null && !programs.has(job),
      stop: state === "running" ? { act: "stop program", job } : null,
    })),
  ];
}

/** Rows of traffic that was kept: when it was active, totals and means. */
export function keptRows(rows) {
  return rows.map(({ host, what, ends, bytes, lost, window, ...row }) => {
    const { start_s: start, end_s: end, mean_bps: mean, rtt_ms: rtt } = row;
    const active = start === null || end === null ? "–" : `${start.toFixed(1)} to ${end.toFixed(1)} s`;
    const payload = known(bytes, (value) => `${sizeText(value)}, ${rateText(mean)}`);
    const rest = [known(lost, String), known(rtt, (value) => `${shortText(value)} ms`), known(window, shortText)];
    return { cells: [host, what, ends, active, payload, ...rest] };
  });
}

/** Shows traffic that was kept, `rows` of `count` ends of flows; `null`: none. */
export function showKeptTraffic(kept, note) {
  const part = document.getElementById("traffic");
  part.hidden = kept === null || kept.count === 0;
  if (part.hidden) return;
  const { rows, count } = kept;
  const heads = part.querySelectorAll("th");
  const words = ["active", "payload, mean rate", "lost", "mean round trip", "mean window"];
  for (const [place, word] of words.entries()) heads[STATE + place].textContent = word;
  const cut = count > rows.length ? `${count}; the first ${rows.length} are shown.` : "";
  part.querySelector("[role=status]").textContent = [cut, note].filter(Boolean).join(" ");
  part.querySelector("tbody").replaceChildren(...keptRows(rows).map(tableRow));
}

/** Rows of connections with controllers from two looks at them. */
export function controllerRows(told, before) {
  const key = (row) => `${row.switch} ${row.target} ${row.peer}`;
  const then = new Map((before ?? []).map((row) => [key(row), row]));
  return told.map((row) => {
    const state = row.version === null ? "not connected" : `OpenFlow ${row.version}, ${row.role}`;
    const cells = [
      row.switch,
      row.target,
      row.trouble ? `${state}: ${row.trouble}` : state,
      row.messages,
      row.packet_ins,
      row.errors,
    ];
    const earlier = then.get(key(row));
    const more = earlier !== undefined && row.messages + row.packet_ins > earlier.messages + earlier.packet_ins;
    return { key: key(row), cells, counts: more, isNew: before !== null && earlier === undefined };
  });
}

/** Rows of what was said with the controllers of a switch: the newest messages, and above them all by type. */
export function messageRows(told, before) {
  const then = new Map((before ?? []).map((one) => [one.target, one]));
  const ways = [["sent", "to it"], ["received", "from it"]];
  const totals = told.flatMap(({ target, ...counts }) =>
    ways.flatMap(([way, words]) =>
      Object.entries(counts[way]).map(([type, count]) => ({
        key: `all ${target} ${way} ${type}`,
        cells: ["all", target, words, type, "–", count],
        counts: before !== null && count > (then.get(target)?.[way][type] ?? 0),
      })),
    ),
  );
  const newest = told
    .flatMap(({ target, newest: messages }) => messages.map((one) => ({ ...one, target })))
    .sort((one, other) => other.at_ps - one.at_ps);
  const latest = Math.max(0, ...(before ?? []).flatMap((one) => one.newest.map(({ at_ps: at }) => at)));
  const rows = newest.map(({ at_ps: at, sent, target, type, xid, bytes }) => ({
    key: `${at} ${sent} ${target} ${type} ${xid}`,
    cells: [`${(at / 1e12).toFixed(6)} s`, target, sent ? "to it" : "from it", type, bytes, 1],
    isNew: before !== null && at > latest,
  }));
  return [...totals, ...rows];
}

/** The part `id` of the page, whose rows are asked for at the path of the same name, or at `path`, while it is open. */
export class AskedTable {
  constructor(id, rowsOf, path = () => id) {
    this.path = path;
    this.rowsOf = rowsOf;
    this.part = document.getElementById(id);
    // Another choice is another table.
    this.part.querySelector("select")?.addEventListener("change", () => {
      this.before = null;
      this.#look();
    });
    this.before = null;
    this.lights = new Lights();
    this.timer = null;
    /** Is called with the act that ends what is in a row; null: the page ends nothing. */
    this.onStop = null;
    /** Is called with what the packets of a row are followed by. */
    this.onFollow = () => {};
    this.part.hidden = false;
    this.part.addEventListener("toggle", () => {
      this.before = null;
      this.#look();
    });
  }

  async #look() {
    clearTimeout(this.timer);
    if (!this.part.open) return;
    const begin = performance.now();
    if (!document.hidden) await this.#ask();
    this.timer = setTimeout(() => this.#look(), Math.max(LOOK_MS, PATIENCE * (performance.now() - begin)));
  }

  #row(row) {
    const made = tableRow(row);
    const [host, what, ends] = row.cells;
    const add = (place, word, act) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = word;
      button.setAttribute("aria-label", `${word} ${what} of ${host}: ${ends}`);
      button.addEventListener("click", act);
      made.cells[place].append(" ", button);
    };
    if (row.follow) add(ENDS, "Follow", () => this.onFollow(row.follow));
    if (this.onStop !== null && row.stop) add(STATE, "Stop", () => this.onStop(row.stop));
    return made;
  }

  /** Shows `rows` in place of those that are there; a button that has the focus keeps it. */
  #put(rows) {
    const body = this.part.querySelector("tbody");
    const focused = body.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
    body.replaceChildren(...rows.map((row) => this.#row(row)));
    if (focused === null) return;
    [...body.querySelectorAll("button")].find((one) => one.getAttribute("aria-label") === focused)?.focus();
  }

  async #ask() {
    const says = this.part.querySelector("[role=status]");
    try {
      const answer = await fetch(this.path());
      const told = await answer.json();
      if (!answer.ok) {
        says.textContent = told.message;
        return;
      }
      const rows = this.lights.kept(this.rowsOf(told, this.before), performance.now());
      const more = rows.length - MOST_ROWS;
      const cut = more > 0 ? `${rows.length}; the first ${MOST_ROWS} are shown` : "";
      says.textContent = rows.length === 0 ? "None." : cut;
      this.#put(rows.slice(0, MOST_ROWS));
      this.before = told;
    } catch {
      says.textContent = "No news of the lab: what you see is from before.";
    }
  }
}
