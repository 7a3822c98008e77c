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
  const draw = () => {
    for (const [id, panel] of Object.entries(panels)) {
      Plotly.react(document.getElementById(id), panel.data, themed(panel.layout), config);
    }
  };
  draw();
  dark.addEventListener("change", draw);
  printed.addEventListener("change", draw);
})();
