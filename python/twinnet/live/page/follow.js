// The way of a packet, marked in the picture and told node by node: as the lab would send it now, or as it was kept.

const at = (id) => document.getElementById(id);

/** The numbers of the ways (there and back of each of `links`) by which the packet of `hops` leaves a node. */
export function waysOf(hops, links) {
  const leaves = new Set(hops.flatMap(({ exits }) => exits.map((one) => one.interface)));
  return links.flatMap(({ a_port: a, b_port: b }, number) => [
    ...(leaves.has(a) ? [2 * number] : []),
    ...(leaves.has(b) ? [2 * number + 1] : []),
  ]);
}

/** Shows ways in the picture of `view` and below it. */
class Ways {
  constructor(view) {
    this.view = view;
    at("follow-clear").addEventListener("click", () => this.show([], ""));
  }

  /** Shows a way as the lab gives it. */
  showWay({ arrives, destination, hops, whole }) {
    const end = arrives ? `It arrives at ${destination}.` : `It does not arrive at ${destination}.`;
    this.show(hops, whole ? end : `${end} There are too many nodes to follow it further.`);
  }

  show(hops, end) {
    this.view.picture.follow(waysOf(hops, this.view.network.links));
    at("follow-end").textContent = end;
    at("follow-hops").replaceChildren(
      ...hops.map(({ node, interface: entered, steps, exits }) => {
        const made = document.createElement("li");
        const name = document.createElement("b");
        name.textContent = entered === "" ? node : `${node} by ${entered}`;
        made.append(name);
        for (const { kind, text } of [...steps, ...exits.map(({ text }) => ({ kind: "exit", text }))]) {
          const line = document.createElement("p");
          line.className = kind;
          line.textContent = text;
          made.append(line);
        }
        return made;
      }),
    );
  }
}

/** Ways that were kept while there was traffic: `kept` has for each `words`, the time `at_s` and the `way`. */
export class KeptWays extends Ways {
  constructor(view, kept) {
    super(view);
    at("follow").hidden = kept.length === 0;
    at("follow-what").hidden = true;
    at("follow-kept").hidden = false;
    const chosen = at("follow-which");
    chosen.append(...kept.map(({ words, at_s: time }, place) => new Option(`${words}, at ${time} s`, place)));
    chosen.addEventListener("change", () => {
      if (chosen.value === "") this.show([], "");
      else this.showWay(kept[chosen.value].way);
    });
    at("follow-clear").addEventListener("click", () => (chosen.value = ""));
  }
}

export class Follow extends Ways {
  constructor(view) {
    super(view);
    const hosts = view.network.nodes.filter(({ kind }) => kind === "host").map(({ name }) => name);
    at("follow").hidden = hosts.length < 2;
    at("follow-hosts").replaceChildren(...hosts.map((name) => new Option(name)));
    const form = at("follow-what");
    [form.from.value, form.to.value] = [hosts[0] ?? "", hosts.at(-1) ?? ""];
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#ask(new URLSearchParams(new FormData(form)));
    });
  }

  /** Follows a packet with these values of the form. */
  ask(values) {
    const form = at("follow-what");
    form.reset();
    for (const [name, value] of Object.entries(values)) form.elements[name].value = value;
    at("follow").scrollIntoView({ block: "nearest" });
    return this.#ask(new URLSearchParams(new FormData(form)));
  }

  async #ask(asked) {
    try {
      const answer = await fetch(`follow?${asked}`);
      const told = await answer.json();
      if (!answer.ok) return this.show([], [told.message, told.remedy].filter(Boolean).join("; "));
      this.showWay(told);
    } catch {
      this.show([], "No news of the lab: it may have ended.");
    }
  }
}
