// What the page has changed: each act as a line for a terminal and as Python.

const MOST_LINES = 20;

/** Shows `acts`, the newest first; with `undo` each that can be undone has a button, which calls it with the number. */
export function showActs(acts, undo = null) {
  document.getElementById("acts-done").replaceChildren(
    ...acts.toReversed().map((act) => {
      const item = document.createElement("li");
      item.value = act.number;
      const when = document.createElement("span");
      when.textContent = `${act.at_s.toFixed(1)} s${act.undoes === null ? "" : `, undoes ${act.undoes}`}`;
      item.append(when, ...told("command", act.commands), ...told("python", act.python));
      if (act.note) item.append(paragraph("note", act.note));
      if (act.kept === false) item.append(paragraph("note", "the lab's own record does not have this change"));
      if (undo !== null && act.can_undo) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = "Undo";
        button.setAttribute("aria-label", `Undo change ${act.number}`);
        button.addEventListener("click", () => undo(act.number));
        item.append(button);
      }
      return item;
    }),
  );
}

function told(kind, texts) {
  const more = texts.length - MOST_LINES;
  const shown = texts.slice(0, MOST_LINES).map((text) => paragraph(kind, text));
  return more > 0 ? [...shown, paragraph("note", `and ${more} more`)] : shown;
}

function paragraph(kind, text) {
  const made = document.createElement(kind === "note" ? "p" : "code");
  made.className = kind;
  made.textContent = text;
  return made;
}
