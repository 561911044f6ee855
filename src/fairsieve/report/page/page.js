// Sorting, filtering and charts. Everything the page says is in its HTML already.
"use strict";

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const whenPrinting = (act) => {
  addEventListener("beforeprint", () => act(true));
  addEventListener("afterprint", () => act(false));
};
const parsed = (element) => JSON.parse(element.textContent);

// Paper cannot unfold.
whenPrinting((on) => all(".rest, .folded").forEach((details) => (details.open = on)));
// A link to a folded part opens it.
function unfoldTarget() {
  const part = location.hash && document.getElementById(location.hash.slice(1));
  const folded = part && (part.closest(".folded") ?? part.querySelector(":scope > .folded"));
  if (folded) folded.open = true;
}
addEventListener("hashchange", unfoldTarget);
unfoldTarget();

// ---- Tables

function sortValue(cell, numeric) {
  const text = cell.dataset.value ?? cell.firstChild?.textContent ?? "";
  if (!numeric) return text;
  const number = Number(text);
  return text.trim() === "" || Number.isNaN(number) ? null : number;
}

function compare(a, b) {
  return typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
}

function sortBy(head) {
  const down = head.getAttribute("aria-sort") === "ascending";
  const body = head.closest("table").tBodies[0];
  const numeric = head.classList.contains("n");
  const keyed = [...body.rows].map((row) => [sortValue(row.cells[head.cellIndex], numeric), row]);
  // What has no value stays last, whichever way the rest goes.
  keyed.sort(([a], [b]) => (a === null) - (b === null) || (a === null ? 0 : compare(a, b) * (down ? -1 : 1)));
  body.append(...keyed.map(([, row]) => row));
  showRows(head.closest(".table"), 0);
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
}

for (const button of all("thead button")) {
  button.addEventListener("click", () => sortBy(button.closest("th")));
}

// A finger cannot point: a tap tells the note below the table.
for (const entry of all("tbody [title]")) {
  entry.addEventListener("click", () => {
    const note = entry.closest(".table").querySelector(".note");
    note.textContent = `${entry.parentElement.cells[0].firstChild.textContent}: ${entry.title}`;
    note.hidden = false;
  });
}

// Shows the rows that match the filter: all of them, or so many at once, from the place-th row on.
function showRows(box, place) {
  const rows = [...box.querySelector("tbody").rows];
  const words = (box.querySelector("input")?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const matching = rows.filter((row) => {
    const text = row.textContent.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const pager = box.querySelector(".pager");
  const first = Math.max(0, Math.min(place, matching.length - 1));
  const count = pager ? Number(pager.dataset.rows) : matching.length;
  const visible = new Set(matching.slice(first, first + count));
  for (const row of rows) row.hidden = !visible.has(row);
  const filter = box.querySelector(".filter output");
  if (filter) filter.textContent = `${matching.length} of ${rows.length} rows`;
  if (!pager) return;
  const last = Math.min(first + count, matching.length);
  pager.hidden = false;
  pager.dataset.place = first;
  pager.querySelector("output").textContent = last ? `rows ${first + 1} to ${last} of ${matching.length}` : "no rows";
  pager.querySelector("[data-step='-1']").disabled = first === 0;
  pager.querySelector("[data-step='1']").disabled = last >= matching.length;
}

for (const button of all(".pager button")) {
  button.addEventListener("click", () => {
    const { place, rows } = button.parentElement.dataset;
    showRows(button.closest(".table"), Number(place) + Number(button.dataset.step) * Number(rows));
  });
}

for (const box of all(".table")) {
  if (!box.querySelector(".filter, .pager")) continue;
  box.querySelector("input")?.addEventListener("input", () => showRows(box, 0));
  showRows(box, 0);
}

// ---- Charts

const themes = parsed(document.getElementById("themes"));
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const coarse = matchMedia("(pointer: coarse)");
const MOST_MARKERS = 30; // on a line; more would hide it
const MANY_POINTS = 50; // from here on points are small and let others shine through
let printing = false;

const theme = () => (prefersDark.matches && !printing ? themes.dark : themes.light);
const shown = (value) => (typeof value === "number" ? String(Number(value.toPrecision(4))) : value);
const given = (value) => value !== null && value !== undefined;
const spread = (value, ends) =>
  ends ? ` [${shown(ends[0])}, ${shown(ends[1])}]` : given(value) ? ` ± ${shown(value)}` : "";

function hoverText(series, i, name, panel) {
  const label = series.labels?.[i] ? `<br>${series.labels[i]}` : "";
  const x = `${panel.x_title}: ${shown(series.x[i])}${spread(series.x_deviation?.[i], series.x_interval?.[i])}`;
  const y = `${panel.y_title}: ${shown(series.y[i])}${spread(series.deviation?.[i], series.interval?.[i])}`;
  return `<b>${name}</b>${label}<br>${x}<br>${y}`;
}

// The deviation around a line: a closed shape for each stretch without gaps.
function band(series, colour) {
  const x = [], y = [];
  let run = [];
  const close = () => {
    const edge = (sign) => run.map((i) => series.y[i] + sign * (series.deviation[i] ?? 0));
    const across = run.map((i) => series.x[i]);
    x.push(...across, ...across.toReversed(), null);
    y.push(...edge(1), ...edge(-1).toReversed(), null);
    run = [];
  };
  series.y.forEach((value, i) => (value === null ? run.length && close() : run.push(i)));
  if (run.length) close();
  return {
    type: "scatter", mode: "lines", x, y, fill: "toself", fillcolor: colour + "2E", line: { width: 0 },
    hoverinfo: "skip",
  };
}

// Of a deviation to both sides, or from end to end of an interval.
function errorBars(values, ends, middle, colour) {
  const look = { color: colour, thickness: 1.5, width: 4 };
  if (!ends) return values && { array: values, ...look };
  const array = ends.map(([, high], i) => high - middle[i]);
  const arrayminus = ends.map(([low], i) => middle[i] - low);
  return { type: "data", symmetric: false, array, arrayminus, ...look };
}

// Two values of one thing, before (open) and after (filled), joined; a little apart, so that both intervals show.
function dumbbell(series, name, panel, colour) {
  const labels = series.labels ?? ["before", "after"];
  const places = [series.y[0] - 0.13, series.y[1] + 0.13];
  const ends = [0, 1].map((i) => ({
    type: "scatter", mode: "markers", x: [series.x[i]], y: [places[i]], name, hoverinfo: "text",
    hovertext: [`<b>${name}</b><br>${labels[i]}: ${shown(series.x[i])}${spread(null, series.x_interval?.[i])}`],
    marker: { color: i ? colour : theme().background, symbol: series.symbol, size: 11, line: { color: colour, width: 2 } },
    error_x: errorBars(null, series.x_interval && [series.x_interval[i]], [series.x[i]], colour),
  }));
  const joined = { type: "scatter", mode: "lines", x: series.x, y: places, line: { color: colour, width: 3 }, opacity: 0.45, hoverinfo: "skip" };
  return [joined, ...ends];
}

function tracesOf(series, name, panel) {
  const colour = theme().hues[series.hue];
  const trace = {
    x: series.x, y: series.y, name, hoverinfo: "text",
    hovertext: series.x.map((_, i) => hoverText(series, i, name, panel)),
  };
  if (series.kind === "bars") {
    const pattern = series.dashed ? { shape: "/", fgcolor: colour, bgcolor: theme().background } : {};
    const marker = { color: colour, pattern, line: { color: colour, width: 1 } };
    return [{ ...trace, type: "bar", marker, error_y: errorBars(series.deviation, series.interval, series.y, theme().ink) }];
  }
  if (series.kind === "dumbbell") return dumbbell(series, name, panel, colour);
  const symbol = series.symbol + (series.dashed ? "-open" : "");
  const marker = { color: colour, symbol, size: 8, line: { color: colour, width: series.dashed ? 1.5 : 0 } };
  if (series.kind === "points" || series.kind === "curve") {
    const error_x = errorBars(series.x_deviation, series.x_interval, series.x, colour);
    const error_y = errorBars(series.deviation, series.interval, series.y, colour);
    const mode = series.kind === "curve" ? "lines+markers" : "markers";
    const look = series.x.length > MANY_POINTS ? { size: 5, opacity: 0.55 } : { size: 10 };
    return [{ ...trace, type: "scatter", mode, line: { color: colour, width: 1.5 }, marker: { ...marker, ...look }, error_x, error_y }];
  }
  const mode = series.x.length > MOST_MARKERS || series.dashed ? "lines" : "lines+markers";
  const line = { color: colour, width: 2, dash: series.dashed ? "dash" : "solid" };
  const drawn = { ...trace, type: "scatter", mode, line, marker };
  return series.deviation ? [band(series, colour), drawn] : [drawn];
}

// An axis that a panel fixes; the others fit their data.
const fixedRange = (panel, axis) =>
  axis === "y" && panel.y_names.length ? [panel.y_names.length - 0.5, -0.5] : panel[`${axis}_range`];
const rangeOf = (panel, axis) => (fixedRange(panel, axis) ? { range: fixedRange(panel, axis) } : {});
const namesOf = ({ y_names }) =>
  y_names.length ? { tickvals: y_names.map((_, i) => i), ticktext: y_names, showgrid: false } : {};

function layoutOf(panel, plot) {
  const { ink, muted, line } = theme();
  const axis = { gridcolor: line + "B0", linecolor: muted, zeroline: false, automargin: true, ticks: "" };
  return {
    width: plot.clientWidth, height: plot.clientHeight,
    margin: { l: 40, r: 10, t: 8, b: 26 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 12, color: muted },
    xaxis: { ...axis, type: panel.categories ? "category" : "linear", showgrid: !panel.categories, ...rangeOf(panel, "x") },
    yaxis: { ...axis, type: "linear", ...rangeOf(panel, "y"), ...namesOf(panel) },
    hoverlabel: { bgcolor: theme().panel, bordercolor: muted, font: { color: ink }, align: "left" },
    hovermode: "closest", showlegend: false, barmode: "group", bargroupgap: 0.08, uirevision: "keep",
    // A finger on a chart scrolls the page.
    dragmode: coarse.matches ? false : "zoom",
  };
}

class Chart {
  constructor(figure) {
    this.data = parsed(figure.querySelector(".chart"));
    this.plots = all(".plot", figure);
    this.hidden = new Set();
    this.reset = figure.querySelector(".reset");
    this.reset.addEventListener("click", () => {
      this.plots.forEach((plot, i) => Plotly.relayout(plot, this.wholeView(this.data.panels[i])));
      this.reset.hidden = true;
    });
    this.draw();
    for (const plot of this.plots) {
      plot.on("plotly_relayout", () => {
        this.reset.hidden = this.plots.every(({ layout }, i) => this.isWhole(layout, this.data.panels[i]));
      });
    }
    for (const box of all("[data-series]", figure)) {
      box.addEventListener("change", () => {
        this.hidden[box.checked ? "delete" : "add"](Number(box.dataset.series));
        this.draw();
      });
    }
  }

  wholeView(panel) {
    return Object.fromEntries(["x", "y"].map((axis) => {
      const range = fixedRange(panel, axis);
      return range ? [`${axis}axis.range`, range.slice()] : [`${axis}axis.autorange`, true];
    }));
  }

  isWhole(layout, panel) {
    return ["x", "y"].every((axis) => {
      const range = fixedRange(panel, axis);
      const now = layout[`${axis}axis`];
      return range ? range.every((end, i) => end === now.range[i]) : now.autorange;
    });
  }

  draw() {
    this.plots.forEach((plot, i) => {
      if (!plot.clientWidth) return; // folded again
      const panel = this.data.panels[i];
      const traces = panel.series
        .filter((series) => !this.hidden.has(series.name))
        .flatMap((series) => tracesOf(series, this.data.names[series.name], panel));
      Plotly.react(plot, traces, layoutOf(panel, plot), { displayModeBar: false, scrollZoom: false });
    });
  }
}

async function loadPlotly() {
  const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (c) => c.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(unpacked).text();
  document.head.append(script);
}

async function drawCharts() {
  if (!document.getElementById("plotly")) return;
  await loadPlotly();
  const charts = [];
  const redraw = () => charts.forEach((chart) => chart.draw());
  // A figure in a folded part has no size: it is drawn when that opens.
  const waiting = new Set(all("figure"));
  const drawVisible = () => {
    for (const figure of waiting) {
      if (figure.closest(".folded:not([open])")) continue;
      waiting.delete(figure);
      charts.push(new Chart(figure));
    }
  };
  for (const folded of all(".folded")) folded.addEventListener("toggle", drawVisible);
  for (const figure of [...waiting]) {
    if (figure.closest(".folded:not([open])")) continue;
    waiting.delete(figure);
    charts.push(new Chart(figure));
    await new Promise(requestAnimationFrame); // the page answers while many charts are drawn
  }
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) redraw();
    width = innerWidth;
  });
  prefersDark.addEventListener("change", redraw);
  whenPrinting((on) => {
    printing = on;
    document.documentElement.classList.toggle("printing", on); // the width of paper, to draw for it
    drawVisible();
    redraw();
  });
}

drawCharts().then(() => (document.documentElement.dataset.ready = "yes"));
