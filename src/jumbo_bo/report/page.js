"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const style = getComputedStyle(document.documentElement);
  const touch = matchMedia("(hover: none), (pointer: coarse)").matches;

  // '--old' becomes the colour of that name, but only where a colour is meant: a label may look like one.
  const themed = (value, key) => {
    if (Array.isArray(value)) return value.map((v) => themed(v, key));
    if (value && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, themed(v, k)]));
    const colour = typeof value === "string" && value.startsWith("--") && /color/.test(key);
    return colour ? style.getPropertyValue(value).trim() : value;
  };

  const axis = { gridcolor: "--line", linecolor: "--line", zeroline: false, zerolinecolor: "--line", automargin: true,
    exponentformat: "power", minexponent: 4, title: { standoff: 8 } };
  const base = {
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: "--ink" },
    paper_bgcolor: "--page", plot_bgcolor: "--page", margin: { l: 8, r: 8, t: 8, b: 8 }, hovermode: "closest",
    dragmode: touch ? false : "zoom", // a finger scrolls the page
    hoverlabel: { bgcolor: "--card", bordercolor: "--muted", font: { color: "--ink" }, align: "left" },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", bgcolor: "--veil" },
  };
  // Plotly's own toolbar offers to send the plot to a server: only the buttons named here, and no server.
  const config = { responsive: true, displaylogo: false, displayModeBar: touch ? false : "hover",
    modeBarButtons: [["toImage", "resetScale2d"]], showSendToCloud: false, plotlyServerURL: "" };

  const layoutOf = (layout) => {
    const made = { ...base, ...layout, legend: { ...base.legend, ...layout.legend } };
    for (const key of Object.keys(made).filter((k) => /^[xy]axis\d*$/.test(k)))
      made[key] = { ...axis, ...made[key], title: { ...axis.title, ...made[key].title } };
    return made;
  };
  const draw = () => {
    for (const [id, { data, layout }] of Object.entries(figures))
      Plotly.react(id, themed(data, ""), themed(layoutOf(layout), ""), { ...config, toImageButtonOptions: { filename: id } });
  };
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  // A click on a heading sorts by it, a second one turns the order around. Cells without a value stay at the end.
  const keyOf = (row, column) => {
    const cell = row.cells[column], text = cell.dataset.key ?? cell.textContent.trim();
    return text === "" ? null : Number.isNaN(Number(text)) ? text : Number(text);
  };
  const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  for (const button of document.querySelectorAll("th button"))
    button.addEventListener("click", () => {
      const head = button.closest("th"), body = head.closest("table").tBodies[0];
      const turned = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      const keyed = [...body.rows].map((row) => [keyOf(row, head.cellIndex), row]);
      keyed.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : turned * order(a, b)));
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", turned === 1 ? "ascending" : "descending");
      body.append(...keyed.map(([, row]) => row));
    });
})();
