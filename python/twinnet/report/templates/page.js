(() => {
  const panels = JSON.parse(document.getElementById("panels").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const printed = window.matchMedia("print");
  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim(), soft = style.getPropertyValue("--soft").trim();
    const rule = style.getPropertyValue("--rule").trim(), raised = style.getPropertyValue("--raised").trim();
    const axis = { gridcolor: rule, linecolor: rule, tickcolor: rule, tickfont: { color: soft } };
    return { ink, soft, raised, axis };
  };
  const themed = (layout) => {
    const { ink, soft, raised, axis } = colours();
    return {
      ...layout,
      font: { family: getComputedStyle(document.body).fontFamily, size: 12.5, color: ink },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      xaxis: { ...layout.xaxis, ...axis }, yaxis: { ...layout.yaxis, ...axis },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: ink },
      hoverlabel: { bgcolor: raised, bordercolor: soft, font: { color: ink } },
      annotations: layout.annotations.map((one) => ({ ...one, font: { ...one.font, color: soft } })),
    };
  };
  const buttons = [["toImage", "zoom2d", "pan2d", "resetScale2d"]];
  const config = { responsive: true, displaylogo: false, displayModeBar: "hover", modeBarButtons: buttons };
  // A plot is drawn in pixels of the screen; with a view box the style for print can scale it to its column.
  const scalable = (plot) => {
    const { width, height } = plot._fullLayout;
    plot.style.setProperty("--shape", `${width} / ${height}`);
    for (const svg of plot.querySelectorAll(".main-svg")) svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  };
  const draw = () => {
    for (const [id, panel] of Object.entries(panels)) {
      const plot = document.getElementById(id);
      const drawn = Plotly.react(plot, panel.data, themed(panel.layout), config);
      if (!plot.classList.contains("drawn")) drawn.then(() => {
        scalable(plot);
        plot.on("plotly_afterplot", () => scalable(plot));
      });
      plot.classList.add("drawn");
    }
  };
  draw();
  dark.addEventListener("change", draw);
  printed.addEventListener("change", draw);
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => folded.forEach((one) => { one.open = false; }));
})();
