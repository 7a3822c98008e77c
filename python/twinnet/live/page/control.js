// What a page that may change its lab has besides: forms for links, queues and flows. The lab checks every value.

import { showActs } from "./acts.js";
import { Captures } from "./captures.js";
import { openConsole } from "./console.js";
import { saveText } from "./out.js";

const NAMES = ["rate", "delay", "jitter", "loss"];
const WAYS = ["both", "ab", "ba"];

const part = (id) => document.getElementById(id);

export class Control {
  /** Changes what `view` shows; `flows` is its flow table, and `follow` follows packets in it. */
  constructor(view, flows, follow) {
    this.view = view;
    this.flows = flows;
    this.settings = null;
    this.number = null;
    this.asked = 0;
    this.sender = null;
    for (const id of ["acts", "add-flow", "delete-flows", "puzzle", "save"]) part(id).hidden = false;
    this.captures = new Captures(this, follow);
    part("go-on").hidden = view.network.clock !== "virtual";
    part("go-on").addEventListener("submit", (event) => {
      event.preventDefault();
      const { duration, speed } = part("go-on").elements;
      this.do({ act: "go on", duration: duration.value, speed: Number(speed.value) });
    });
    part("next-event").addEventListener("click", () => this.do({ act: "next event" }));
    part("stand-still").addEventListener("click", () => this.do({ act: "stand still" }));
    this.form = part("change-link");
    this.form.elements.direction.addEventListener("change", () => this.#fill());
    this.form.addEventListener("submit", (event) => this.#changeLink(event));
    part("puzzle").addEventListener("submit", (event) => {
      event.preventDefault();
      this.do({ act: "seal", seed: Number(part("puzzle").elements.seed.value) });
    });
    part("answer").addEventListener("click", () => this.do({ act: "answer" }));
    part("save").addEventListener("click", () => this.#save());
    part("updown").addEventListener("click", () => this.#link("both", { up: !this.settings.up }));
    part("open-console").addEventListener("click", () => openConsole(this.sender));
    part("send-close").addEventListener("click", () => this.send(null));
    part("send-what").addEventListener("submit", (event) => this.#start(event));
    this.#onSubmit("add-flow", "flow", (flow) => ({ act: "add flow", switch: flows.switch, flow }));
    this.#onSubmit("delete-flows", "match", (match) => ({ act: "delete flows", switch: flows.switch, match }));
  }

  /** Shows what can be changed of the link `number`; `null`: nothing. */
  async choose(number) {
    if (number !== this.number) part("change").hidden = true;
    this.number = number;
    if (number === null) return;
    const link = this.view.network.links[number];
    part("start-capture").replaceChildren(...this.captures.starters([link.a_port, link.b_port]));
    this.asked += 1;
    const { asked } = this;
    const answer = await fetch(`settings/${number}`);
    const told = await answer.json();
    // An answer that a later one has overtaken is of before what was changed in between.
    if (this.view.chosen !== number || this.asked !== asked) return;
    if (!answer.ok) {
      this.#refused(told);
      return;
    }
    this.settings = told;
    const texts = ["both ways", `${link.a_port} → ${link.b}`, `${link.b_port} → ${link.a}`];
    const { direction } = this.form.elements;
    const before = direction.value;
    direction.replaceChildren(...texts.map((text, place) => new Option(text, WAYS[place])));
    direction.value = WAYS.includes(before) ? before : "both";
    part("updown").textContent = told.up ? "Take down" : "Bring up";
    part("change-queues").replaceChildren(
      ...Object.entries(told.queues).map(([port, queue]) => this.#queueForm(port, queue)),
    );
    this.#fill();
    part("change").hidden = false;
  }

  /** Puts the settings of the chosen direction into the fields; where the two ways differ, a field is empty. */
  #fill() {
    if (this.settings === null) return;
    const way = this.form.elements.direction.value;
    const { ab, ba } = this.settings;
    for (const name of NAMES) {
      const [there, back] = [ab, ba].map((one) => shown(one[name]));
      const field = this.form.elements[name];
      const differ = way === "both" && there !== back;
      field.value = differ ? "" : way === "ba" ? back : there;
      field.placeholder = differ ? `${there || "none"} / ${back || "none"}` : "none";
      field.defaultValue = field.value;
    }
  }

  #changeLink(event) {
    event.preventDefault();
    const set = {};
    for (const name of NAMES) {
      const field = this.form.elements[name];
      if (field.value !== field.defaultValue) set[name] = given(field.value) ?? (name === "delay" ? "0 s" : null);
    }
    this.#link(this.form.elements.direction.value, set);
  }

  #link(direction, set) {
    this.do({ act: "link", link: this.view.chosen, direction, set });
  }

  #queueForm(port, queue) {
    const form = document.createElement("form");
    const label = document.createElement("label");
    const field = document.createElement("input");
    field.name = "queue";
    field.size = 30;
    field.value = queue ?? "";
    field.placeholder = "fifo,limit_frames=100";
    label.append(`Queue at ${port} `, field);
    const button = document.createElement("button");
    button.textContent = "Change";
    form.append(label, " ", button);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.do({ act: "queue", port, queue: field.value });
    });
    return form;
  }

  /** Shows what the host called `name` can send; `null`: nothing. */
  send(name) {
    this.sender = name;
    part("send").hidden = name === null;
    if (name === null) return;
    part("send-from").textContent = `Send from ${name}`;
    const others = this.view.network.nodes.filter((one) => one.kind === "host" && one.name !== name);
    part("send-what").elements.to.replaceChildren(...others.map((one) => new Option(one.name)));
    part("send-what").elements.to.focus();
  }

  #start(event) {
    event.preventDefault();
    const { to, what, rate, duration } = part("send-what").elements;
    const act = { act: "send", what: what.value, from: this.sender, to: to.value, duration: duration.value };
    this.do(what.value === "udp" ? { ...act, rate: rate.value } : act);
  }

  #onSubmit(id, name, act) {
    part(id).addEventListener("submit", async (event) => {
      event.preventDefault();
      const field = part(id).elements[name];
      if (await this.do(act(field.value))) field.value = "";
      this.flows.look();
    });
  }

  /** Has an act done, and says whether it was. */
  async do(act) {
    const headers = { "Content-Type": "application/json" };
    try {
      const answer = await fetch("act", { method: "POST", headers, body: JSON.stringify(act) });
      const told = await answer.json();
      this.#refused(answer.ok ? null : told);
      if (!answer.ok) return false;
    } catch {
      this.#refused({ message: "The page's server does not answer.", remedy: "" });
      return false;
    }
    await Promise.all([this.look(), this.choose(this.view.chosen)]);
    return true;
  }

  /** Asks for the acts, and shows them. */
  async look() {
    const acts = await (await fetch("acts")).json();
    this.view.acts = acts;
    showActs(acts, (number) => this.do({ act: "undo", number }));
  }

  async #save() {
    const answer = await fetch("network.yaml");
    this.#refused(answer.ok ? null : await answer.json());
    if (!answer.ok) return;
    saveText(`${this.view.network.lab}.yaml`, "application/yaml", await answer.text());
  }

  #refused(error) {
    part("refused").hidden = error === null;
    part("refused").textContent = error === null ? "" : `${error.message}${error.remedy ? ` (${error.remedy})` : ""}`;
  }
}

/** A setting as its field has it. */
function shown(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** What a field says: nothing for no limit and no impairment. */
function given(text) {
  const said = text.trim();
  return said === "" || said === "none" ? null : said;
}
