// Captures of a page that may change its lab: started at a port, stopped, analysed here, and saved.

const LOOK_MS = 1000;

const at = (id) => document.getElementById(id);

export class Captures {
  /** `control` has acts done, and `follow` follows packets. */
  constructor(control, follow) {
    this.control = control;
    this.follow = follow;
    this.rows = [];
    at("analysis-close").addEventListener("click", () => (at("analysis").hidden = true));
    setInterval(() => this.rows.some((row) => row.running) && this.look(), LOOK_MS);
    this.look();
  }

  /** Buttons that start a capture at each of `ports`. */
  starters(ports) {
    return ports.map((port) => button("Capture at " + port, () => this.#do({ act: "capture", port })));
  }

  /** Asks for the captures, and shows them. */
  async look() {
    try {
      this.rows = await (await fetch("captures")).json();
    } catch {
      return;
    }
    at("captures").hidden = this.rows.length === 0;
    at("capture-rows").replaceChildren(...this.rows.map((row) => this.#row(row)));
  }

  async #do(act) {
    const done = await this.control.do(act);
    await this.look();
    return done;
  }

  #row(row) {
    const made = document.createElement("tr");
    const dropped = row.dropped > 0 ? `, ${row.dropped} not kept` : "";
    const state = row.running ? `runs for ${row.seconds} s` : `${row.frames} frames${dropped}`;
    for (const text of [row.port, row.failure ?? state, `${(row.bytes / 1000).toFixed(1)} kB`]) {
      made.insertCell().textContent = text;
    }
    const { capture } = row;
    const buttons = row.running
      ? [button("Stop", () => this.#do({ act: "stop capture", capture }))]
      : [button("Analyse", () => this.#analyse(row)), download(row)];
    buttons.push(button("Discard", () => this.#do({ act: "discard capture", capture })));
    for (const one of buttons) one.setAttribute("aria-label", `${one.textContent} capture ${capture}`);
    made.insertCell().append(...buttons);
    return made;
  }

  async #analyse({ capture, port }) {
    const answer = await fetch(`captures/${capture}`);
    const told = await answer.json();
    at("analysis").hidden = false;
    at("analysis-of").textContent = `Capture ${capture} at ${port}`;
    at("analysis-told").textContent = answer.ok ? told.notes.join("; ") : told.message;
    at("analysis-tables").replaceChildren(...(answer.ok ? told.tables.flatMap((one) => this.#table(one)) : []));
  }

  #table({ title, columns, rows, more, follow }) {
    const head = document.createElement("h3");
    head.textContent = title;
    const made = document.createElement("table");
    const names = made.createTHead().insertRow();
    for (const name of follow ? [...columns, ""] : columns) {
      const cell = document.createElement("th");
      cell.textContent = name;
      names.append(cell);
    }
    const body = made.createTBody();
    rows.forEach((row, place) => {
      const line = body.insertRow();
      for (const text of row) line.insertCell().textContent = text;
      if (!follow) return;
      const [asked, cell] = [follow[place], line.insertCell()];
      if (asked === null) return;
      cell.append(button("Follow", () => this.follow.ask(asked)));
      cell.firstChild.setAttribute("aria-label", `Follow packet ${row[0]}`);
    });
    const rest = document.createElement("p");
    rest.textContent = more > 0 ? `and ${more} more` : "";
    const frame = document.createElement("div");
    frame.append(made);
    return [head, frame, rest];
  }
}

function button(text, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.addEventListener("click", act);
  return made;
}

function download({ capture }) {
  const made = document.createElement("a");
  made.href = `captures/${capture}.pcapng`;
  made.download = "";
  made.textContent = "Download";
  return made;
}
