// Updates the overview live: metrics and chart from the WebSocket, by polling while the socket is
// closed. A dot shows the state: live only while every broker answers, else partly, stale or lost,
// with the time of the latest answer.
(() => {
  const state = document.getElementById("live-state");
  const trouble = document.getElementById("live-trouble");
  const reason = document.getElementById("live-reason");
  const box = document.getElementById("rates-chart");
  const SHOWN_S = 600;
  const GAP_S = 10;
  const RETRY_MS = [1000, 2000, 4000, 8000];
  const POLL_MS = 4000;
  const clock = new Intl.DateTimeFormat("en-GB", {
    timeZone: document.body.dataset.zone,
    ...{ hour: "2-digit", minute: "2-digit", second: "2-digit" },
  });

  let intervalMs = 2000;
  let newest = Date.now() - 1000;
  let freshAt = Number(state.querySelector("time[data-ms]")?.dataset.ms) || Date.now();
  let retries = 0;
  let poller = null;
  const columns = [[], [], []];
  const chart = gantry.timeChart(box, [
    { label: box.dataset.labelIn, color: "--gantry-in", fill: true },
    { label: box.dataset.labelOut, color: "--gantry-out" },
  ]);

  const formats = {
    rate: (value) => gantry.number(value),
    number: (value) => (value === null ? "—" : value.toLocaleString("en")),
    size: (value) => {
      if (value === null) return "—";
      const units = ["B", "KiB", "MiB", "GiB", "TiB"];
      let unit = 0;
      let amount = value;
      while (Math.abs(amount) >= 1024 && unit < units.length - 1) {
        amount /= 1024;
        unit += 1;
      }
      return `${unit ? amount.toFixed(1) : amount} ${units[unit]}`;
    },
  };

  function say(name) {
    const text = state.dataset[`text${name[0].toUpperCase()}${name.slice(1)}`];
    const shown = text.replace("{time}", clock.format(freshAt));
    state.dataset.state = name;
    // Screen readers announce each new text, also the same text again.
    const label = state.querySelector(".live-text");
    if (label.textContent !== shown) label.textContent = shown;
  }

  function fill(element, value) {
    if (value === undefined) return;
    element.textContent = formats[element.dataset.format](value);
  }

  // The totals of today count from the start of a broker until its first midnight.
  function fillToday(label, sample) {
    const begins = sample.today_begins || "";
    if (label.dataset.today === begins) return;
    label.dataset.today = begins;
    const text = document.createElement("span");
    text.textContent = begins ? label.dataset[`text${begins[0].toUpperCase()}${begins.slice(1)}`] : "";
    label.replaceChildren(text);
  }

  function append(sample) {
    const at = sample.at_ms / 1000;
    const last = columns[0].at(-1);
    if (last === undefined) push(at - 1, null, null); // uPlot cannot scale a single point
    if (last !== undefined && at <= last) return;
    if (last !== undefined && at - last > GAP_S) push(last + 1, null, null); // a gap breaks the line
    push(at, sample.in_rate, sample.out_rate);
    while (columns[0][0] < at - SHOWN_S) for (const column of columns) column.shift();
  }

  function push(at, rateIn, rateOut) {
    columns[0].push(at);
    columns[1].push(rateIn);
    columns[2].push(rateOut);
  }

  function show(sample) {
    newest = Date.now();
    if (sample.fresh_at_ms) freshAt = sample.fresh_at_ms;
    trouble.hidden = true;
    for (const element of document.querySelectorAll("[data-live]")) {
      fill(element, sample[element.dataset.live]);
    }
    for (const label of document.querySelectorAll("[data-today]")) fillToday(label, sample);
    const known = [...document.querySelectorAll("[data-broker]")];
    const before = known.map((row) => `${row.dataset.broker} ${row.dataset.brokerState}`);
    const now = sample.brokers.map((broker) => `${broker.addr} ${broker.state}`);
    const listed = document.querySelectorAll("#failures li").length;
    if (before.join() !== now.join() || listed !== sample.failures.length) {
      document.getElementById("brokers-part").dispatchEvent(new Event("brokers-changed"));
    }
    for (const broker of sample.brokers) {
      const row = document.querySelector(`[data-broker="${CSS.escape(broker.addr)}"]`);
      if (!row) continue;
      for (const cell of row.querySelectorAll("[data-row]")) fill(cell, broker[cell.dataset.row]);
    }
    append(sample);
    chart.set(columns);
  }

  function lost(message) {
    trouble.hidden = false;
    reason.textContent = message;
    say("stale");
  }

  function heard(message) {
    if (message.type === "history") {
      intervalMs = message.interval_ms;
      message.samples.forEach(append);
      chart.set(columns);
    } else if (message.type === "sample") {
      show(message);
      say(message.state === "fresh" ? "live" : message.state);
    } else if (message.type === "lost") {
      lost(message.reason);
    }
  }

  function connect() {
    if (state.dataset.state === "still") say("connecting");
    const address = new URL(state.dataset.feed, location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(address);
    socket.onopen = () => {
      retries = 0;
      stopPolling();
    };
    socket.onmessage = (event) => heard(JSON.parse(event.data));
    socket.onclose = (event) => {
      if (event.code === 4401) {
        location.reload(); // the session ended: the server redirects to the sign-in page
        return;
      }
      say("lost");
      startPolling();
      setTimeout(connect, RETRY_MS[Math.min(retries, RETRY_MS.length - 1)]);
      retries += 1;
    };
  }

  async function poll() {
    if (document.hidden) return;
    try {
      const answer = await fetch(state.dataset.poll, { headers: { Accept: "application/json" } });
      const body = await answer.json();
      if (answer.ok) {
        show(body);
        say(body.state === "fresh" ? "polling" : body.state);
      } else {
        lost(body.detail);
      }
    } catch {
      say("lost");
    }
  }

  function startPolling() {
    if (poller === null) poller = setInterval(poll, POLL_MS);
  }

  function stopPolling() {
    clearInterval(poller);
    poller = null;
  }

  setInterval(() => {
    const silent = Date.now() - newest > 3 * intervalMs;
    if (["live", "partly"].includes(state.dataset.state) && silent) say("stale");
  }, 1000);
  connect();
})();
