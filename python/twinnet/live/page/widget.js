// A lab in the cell of a notebook: its page in a frame of its own, to which is passed on what the kernel sends.

function render({ model, el }) {
  const frame = document.createElement("iframe");
  // Of no origin, so that nothing in it reaches the notebook.
  frame.setAttribute("sandbox", "allow-scripts allow-downloads");
  frame.title = "twinnet live";
  frame.style.cssText = `width: 100%; height: ${model.get("height")}px; border: 0`;
  const passOn = (message) => frame.contentWindow?.postMessage(message, "*");
  const heard = ({ source }) => {
    if (source === frame.contentWindow) model.send({ ready: true });
  };
  window.addEventListener("message", heard);
  model.on("msg:custom", passOn);
  frame.srcdoc = model.get("page");
  el.append(frame);
  return () => {
    window.removeEventListener("message", heard);
    model.off("msg:custom", passOn);
  };
}

export default { render };
