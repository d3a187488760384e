// Draws the charts of the analytics page from the points of the API.
(() => {
  const boxes = {
    throughput: document.getElementById("throughput-chart"),
    success: document.getElementById("success-chart"),
    latency: document.getElementById("latency-chart"),
  };
  if (!boxes.throughput) return;
  const texts = boxes.throughput.dataset;

  const percent = (ratio) => (ratio === null ? null : ratio * 100);
  const perSecond = (count, step) => (count === null ? null : count / step);
  const charts = [
    {
      box: boxes.throughput,
      lines: [
        { label: texts.labelSent, color: "--gantry-in", fill: true, value: (p, step) => perSecond(p.sends, step) },
        { label: texts.labelConsumed, color: "--gantry-out", value: (p, step) => perSecond(p.attempts, step) },
      ],
    },
    {
      box: boxes.success,
      lines: [
        { label: texts.labelSent, color: "--gantry-in", value: (p) => percent(p.send_success) },
        { label: texts.labelConsumed, color: "--gantry-out", value: (p) => percent(p.consume_success) },
      ],
    },
    {
      box: boxes.latency,
      lines: [
        { label: "p50", color: "--gantry-in", value: (p) => p.latency.p50 },
        { label: "p95", color: "--gantry-out", value: (p) => p.latency.p95 },
        { label: "p99", color: "--gantry-third", value: (p) => p.latency.p99 },
      ],
    },
  ];

  function draw(series) {
    // Points after the last trace job have no data yet; a drawn zero would be wrong.
    const known = series.items.filter((point) => point.at_ms < series.committed_ms);
    const step = series.step_ms / 1000;
    for (const { box, lines } of charts) {
      box.dataset.stepS = step;
      // A point between two gaps has no line, so points are drawn too.
      const drawn = lines.map((line) => ({ ...line, points: true }));
      gantry.timeChart(box, drawn).set([
        known.map((point) => point.at_ms / 1000),
        ...lines.map((line) => known.map((point) => line.value(point, step))),
      ]);
      box.dataset.points = known.length;
    }
  }

  async function start() {
    try {
      const answer = await fetch(texts.series, { headers: { Accept: "application/json" } });
      const body = await answer.json();
      if (!answer.ok) throw new Error(body.detail);
      draw(body);
    } catch (error) {
      for (const { box } of charts) box.textContent = `${texts.textFailed} ${error.message}`;
    }
  }

  start();
})();
