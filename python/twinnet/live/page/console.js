// Shells in hosts, at the foot of the window: each is a terminal of xterm.js, which is loaded with the first.

const MOST_OPEN = 4;
const MOST_PIECE = 4096;
/** Room for the scroll bar, in pixels. */
const BAR = 16;

const drawer = document.getElementById("consoles");
let loading = null;

/** The class of terminals. */
async function terminalClass() {
  loading ??= Promise.all([styled("xterm.css"), import("./xterm.js")]);
  await loading;
  return globalThis.Terminal;
}

function styled(name) {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = name;
  document.head.append(link);
  return new Promise((done, failed) => {
    link.addEventListener("load", done);
    link.addEventListener("error", failed);
  });
}

/** The document as xterm.js is to see it: what it would write into elements of style, which the page's policy forbids
 * as it forbids those of an attacker, goes to style sheets as objects. */
function documentForTerminal() {
  const made = { createElement: (kind) => (kind === "style" ? sheetElement() : document.createElement(kind)) };
  return new Proxy(document, {
    get(whole, name) {
      const found = made[name] ?? whole[name];
      return typeof found === "function" && !(name in made) ? found.bind(whole) : found;
    },
  });
}

function sheetElement() {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  const element = document.createElement("template");
  Object.defineProperty(element, "textContent", { set: (text) => sheet.replaceSync(text) });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}

/** It gives spans attributes of style, too, where a program chooses colours of its own. */
HTMLSpanElement.prototype.setAttribute = function (name, value) {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
};

/** Opens a console in the host called `name`. */
export async function openConsole(name) {
  const open = [...drawer.children];
  const ended = open.find((one) => one.classList.contains("ended"));
  if (open.length >= MOST_OPEN) (ended ?? open[0]).dispatchEvent(new Event("close"));
  const parts = made(name);
  drawer.append(parts.section);
  drawer.hidden = false;
  const Terminal = await terminalClass();
  const style = getComputedStyle(document.documentElement);
  const [background, foreground] = ["--paper", "--ink"].map((one) => style.getPropertyValue(one).trim());
  const terminal = new Terminal({
    documentOverride: documentForTerminal(),
    fontFamily: "ui-monospace, monospace",
    fontSize: 16,
    minimumContrastRatio: 4.5,
    scrollback: 2000,
    theme: { background, foreground, cursor: foreground, selectionBackground: "#7f7f7f80" },
  });
  terminal.open(parts.screen);
  terminal.focus();
  joined(name, terminal, parts);
}

/** The parts of a console in the drawer. */
function made(name) {
  const section = document.createElement("section");
  section.setAttribute("aria-label", `Console in ${name}`);
  const head = document.createElement("h2");
  head.textContent = name;
  const says = document.createElement("span");
  says.setAttribute("role", "status");
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "Close";
  close.setAttribute("aria-label", `Close the console in ${name}`);
  const screen = document.createElement("div");
  screen.className = "screen";
  const bar = document.createElement("header");
  bar.append(head, says, close);
  section.append(bar, screen);
  section.addEventListener("close", () => {
    section.remove();
    drawer.hidden = drawer.children.length === 0;
  });
  close.addEventListener("click", () => section.dispatchEvent(new Event("close")));
  return { section, says, screen };
}

/** Joins `terminal` with a shell of the server until one of them ends. */
function joined(name, terminal, { section, says, screen }) {
  const address = new URL(`console/${encodeURIComponent(name)}`, location.href);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(address);
  socket.binaryType = "arraybuffer";
  const say = (text) => {
    says.textContent = text;
    section.classList.add("ended");
  };
  const tell = (message) => socket.readyState === WebSocket.OPEN && socket.send(message);
  const watched = new ResizeObserver(() => fit(terminal, screen));
  socket.addEventListener("open", () => {
    watched.observe(screen);
    tell(JSON.stringify({ size: [terminal.rows, terminal.cols] }));
  });
  socket.addEventListener("message", ({ data }) => {
    if (typeof data !== "string") {
      terminal.write(new Uint8Array(data), () => tell(JSON.stringify({ seen: data.byteLength })));
      return;
    }
    const { ended, error } = JSON.parse(data);
    say(error ?? `ended with status ${ended}`);
  });
  socket.addEventListener("close", () => {
    if (!section.classList.contains("ended")) say("the page's server has closed it");
  });
  const letters = new TextEncoder();
  terminal.onResize(({ rows, cols }) => tell(JSON.stringify({ size: [rows, cols] })));
  terminal.onData((text) => {
    const typed = letters.encode(text);
    for (let from = 0; from < typed.length; from += MOST_PIECE) tell(typed.subarray(from, from + MOST_PIECE));
  });
  terminal.onBinary((text) => tell(Uint8Array.from(text, (one) => one.charCodeAt(0))));
  section.addEventListener("close", () => {
    watched.disconnect();
    socket.close();
    terminal.dispose();
  });
}

/** Gives the terminal as many rows and columns as its place has room for. */
function fit(terminal, screen) {
  const { width, height } = screen.querySelector(".xterm-screen").getBoundingClientRect();
  if (width === 0 || screen.clientWidth === 0) return;
  const columns = Math.floor(((screen.clientWidth - BAR) * terminal.cols) / width);
  const rows = Math.floor((screen.clientHeight * terminal.rows) / height);
  terminal.resize(Math.min(500, Math.max(10, columns)), Math.min(200, Math.max(3, rows)));
}
