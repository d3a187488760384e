// Time series with uPlot, in the page's colours, language and time zone. `gantry.timeChart(box, series)`:
// `series` is [{label, color: "--css-variable", fill: true, points: true or "lone"}], lone points being those
// between two gaps; `set(data)` takes
// uPlot's columns, seconds first, null for a gap. The box may set `data-top`, the maximum of the
// scale, and `data-step-s`: with 60 s or more between points, times include the day.
(() => {
  const BELOW_PX_MIN = 54; // of a legend with one line, and the padding of the box
  const PADDING_PX = 24;
  const LABEL_HALF_PX = 28; // of the time below the last point
  const LONG_LABEL_HALF_PX = 36;
  const [MINUTE_S, HOUR_S, DAY_S] = [60, 3600, 86400];
  // Distances of ticks whose times have no seconds.
  const TICKS_S = [
    ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE_S),
    ...[1, 2, 3, 4, 6, 8, 12].map((count) => count * HOUR_S),
    ...[1, 2, 3, 5, 7, 10, 15, 30, 60, 90, 180, 365].map((count) => count * DAY_S),
  ];
  const SPAN_S_MIN = 120; // a shorter span would exaggerate noise
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function axis(more) {
    return {
      stroke: style("--gantry-muted"),
      grid: { stroke: style("--gantry-line-soft"), width: 1 },
      ticks: { stroke: style("--gantry-line-soft"), width: 1 },
      ...more,
    };
  }

  function number(value) {
    if (value === null || value === undefined) return "—";
    const decimals = Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0;
    return value.toLocaleString("en", { maximumFractionDigits: decimals });
  }

  // Indexes of the points without a neighbour: no line shows them.
  function lone(plot, index) {
    const values = plot.data[index];
    const isGap = (at) => (values[at] ?? null) === null;
    return values.flatMap((_value, at) => (!isGap(at) && isGap(at - 1) && isGap(at + 1) ? [at] : []));
  }

  const widthOf = (box) => box.clientWidth - 24;

  function inZone(seconds) {
    return uPlot.tzDate(new Date(seconds * 1000), document.body.dataset.zone);
  }

  function options(box, series, unit) {
    const two = (value) => String(value).padStart(2, "0");
    const hasDays = Number(box.dataset.stepS) >= MINUTE_S;
    const clock = (at) =>
      hasDays
        ? `${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`
        : `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
    const top = Number(box.dataset.top);
    return {
      width: widthOf(box),
      height: box.clientHeight - BELOW_PX_MIN,
      cursor: { points: { size: 6 } },
      tzDate: inZone,
      padding: [null, box.dataset.stepS ? LONG_LABEL_HALF_PX : LABEL_HALF_PX, null, null],
      scales: {
        x: { range: (_plot, low, high) => [Math.min(low, high - SPAN_S_MIN), high] },
        y: { range: (_plot, _low, high) => [0, top || Math.max(1, high * 1.15)] },
      },
      series: [
        { label: box.dataset.labelTime, value: (_plot, at) => (at ? clock(inZone(at)) : "—") },
        ...series.map((line) => ({
          label: line.label,
          stroke: style(line.color),
          fill: line.fill ? `${style(line.color)}22` : undefined,
          width: 1.75,
          points: { show: line.points === true, size: 5, filter: line.points === "lone" ? lone : null },
          value: (_plot, value) => (value === null ? "—" : `${number(value)} ${unit}`),
        })),
      ],
      axes: [
        axis({
          values: (_plot, ticks) => ticks.map((at) => clock(inZone(at))),
          incrs: hasDays ? TICKS_S : undefined,
          space: 90,
        }),
        axis({ size: 64, values: (_plot, ticks) => ticks.map(number) }),
      ],
    };
  }

  function timeChart(box, series) {
    let data = [[], ...series.map(() => [])];
    let plot = null;
    let belowPx = BELOW_PX_MIN;

    // The legend has the lines that its values need; the plot has the rest of the box. The legend
    // of a size only grows, since the plot would jump.
    function fit() {
      belowPx = Math.max(belowPx, plot.root.querySelector(".u-legend").offsetHeight + PADDING_PX);
      const [width, height] = [widthOf(box), box.clientHeight - belowPx];
      if (width !== plot.width || height !== plot.height) plot.setSize({ width, height });
    }

    function draw() {
      if (plot) plot.destroy();
      plot = new uPlot(options(box, series, box.dataset.unit || ""), data, box);
    }

    // Without a cursor over the chart, the legend shows the newest known values.
    function tellNewest() {
      if (plot.cursor.left >= 0) return;
      const known = data[0].findLastIndex((_at, index) => data.slice(1).some((line) => line[index] !== null));
      plot.setLegend({ idx: known < 0 ? data[0].length - 1 : known });
      fit();
    }

    new ResizeObserver(() => {
      if (!plot) return;
      belowPx = BELOW_PX_MIN;
      tellNewest();
      fit();
    }).observe(box);
    document.documentElement.addEventListener("themechange", () => {
      draw();
      setTimeout(tellNewest); // uPlot draws a new legend after this event
    });
    draw();
    return {
      set(columns) {
        data = columns;
        plot.setData(data);
        tellNewest();
      },
    };
  }

  window.gantry = { ...window.gantry, timeChart, number };
})();
