// Draws the charts of the history (`history/charts.html`) from the points of the API. Each chart lists its
// series as <data> elements. A range that ends now is fetched again while the page is visible.
(() => {
  const section = document.getElementById("history");
  if (!section) return;
  const REFRESH_MS_MIN = 10_000;
  const texts = section.dataset;

  function seriesOf(box) {
    return [...box.querySelectorAll("data")].map(({ value, dataset }) => ({
      url: value,
      label: dataset.label,
      color: dataset.color,
      column: dataset.column,
      scale: Number(dataset.scale),
    }));
  }

  async function fetchPoints(line) {
    const answer = await fetch(line.url, { headers: { Accept: "application/json" } });
    const body = await answer.json();
    if (!answer.ok) throw new Error(body.detail);
    return body;
  }

  function columnsOf(bodies, series) {
    const { begin_ms, step_ms, count } = bodies[0];
    const times = Array.from({ length: count }, (_none, index) => (begin_ms + index * step_ms) / 1000);
    const lines = bodies.map((body, index) =>
      (body[series[index].column] || times.map(() => null)).map((value) =>
        value === null ? null : value * series[index].scale,
      ),
    );
    return [times, ...lines];
  }

  async function draw(entry) {
    const { box, note, series } = entry;
    try {
      const bodies = await Promise.all(series.map(fetchPoints));
      const columns = columnsOf(bodies, series);
      const lines = columns.slice(1);
      const known = lines.flat().filter((value) => value !== null).length;
      if (entry.chart === null) {
        box.dataset.stepS = bodies[0].step_ms / 1000;
        entry.chart = gantry.timeChart(box, series.map((line) => ({ ...line, points: "lone" })));
      }
      entry.chart.set(columns);
      box.dataset.points = known;
      note.textContent = known ? "" : texts.textGaps;
      return bodies[0].step_ms;
    } catch (error) {
      note.textContent = `${texts.textFailed} ${error.message}`;
      return REFRESH_MS_MIN;
    }
  }

  const charts = [...section.querySelectorAll(".chart")].map((box) => {
    const note = document.createElement("p");
    note.className = "chart-state";
    note.setAttribute("role", "status");
    box.after(note);
    return { box, note, series: seriesOf(box), chart: null };
  });

  async function drawAll() {
    const steps = await Promise.all(charts.map(draw));
    if (!texts.span) return;
    setTimeout(refresh, Math.max(REFRESH_MS_MIN, ...steps));
  }

  function refresh() {
    if (!document.hidden) {
      drawAll();
      return;
    }
    document.addEventListener("visibilitychange", refresh, { once: true });
  }

  drawAll();
})();
