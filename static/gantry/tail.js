// A live tail: rows arrive over a WebSocket, newest row first. The page keeps a bounded number of
// rows, also after a stop or a lost connection.
(() => {
  const box = document.getElementById("tail");
  const state = document.getElementById("tail-state");
  const body = document.getElementById("tail-rows");
  const problem = document.getElementById("tail-problem");
  const pause = document.getElementById("tail-pause");
  const stop = document.getElementById("tail-stop");
  const rowsMax = Number(box.dataset.rowsMax);
  const RETRY_MS = [1000, 2000, 4000, 8000];
  const SILENT_MS = 4000;

  const clock = new Intl.DateTimeFormat("sv-SE", {
    timeZone: document.body.dataset.zone,
    ...{ year: "numeric", month: "2-digit", day: "2-digit" },
    ...{ hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 },
  });
  const ended = { seen: 0, leftOut: 0 }; // counts of earlier connections
  let received = { seen: 0, leftOut: 0 };
  let shown = 0;
  let socket = null;
  let enabled = true;
  let retries = 0;
  let lastReceived = 0;
  let queued = [];
  let isDrawScheduled = false;

  function setState(name) {
    state.dataset.state = name;
    state.querySelector(".live-text").textContent =
      state.dataset[`text${name[0].toUpperCase()}${name.slice(1)}`];
  }

  function cell(text, className = "") {
    const td = document.createElement("td");
    td.className = className;
    td.textContent = text;
    return td;
  }

  function size(bytes) {
    return bytes < 1024 ? `${bytes} B` : `${(bytes / 1024).toFixed(1)} KiB`;
  }

  function line(row) {
    const tr = document.createElement("tr");
    const link = document.createElement("a");
    link.href = box.dataset.message.replace(/0\/$/, `${encodeURIComponent(row.offset_msg_id)}/`);
    link.textContent = row.msg_id;
    link.title = row.msg_id;
    const id = cell("", "id");
    id.append(link);
    const preview = cell("", "preview");
    const code = document.createElement("code");
    code.textContent = row.preview;
    preview.append(code);
    tr.append(cell(clock.format(row.stored_ms).replace(",", "."), "moment"), id, cell(row.tags));
    tr.append(cell(row.keys, "keys"), cell(row.place, "mono"), cell(size(row.size_bytes), "num"));
    tr.append(preview);
    return tr;
  }

  function count() {
    const values = { shown, seen: ended.seen + received.seen, left_out: ended.leftOut + received.leftOut };
    for (const element of box.querySelectorAll("[data-count]")) {
      element.textContent = values[element.dataset.count].toLocaleString("en");
    }
  }

  // Draws all rows received since the last animation frame.
  function draw() {
    isDrawScheduled = false;
    const fresh = queued.slice(-rowsMax);
    queued = [];
    const lines = document.createDocumentFragment();
    for (const row of fresh.reverse()) lines.append(line(row));
    body.prepend(lines);
    while (body.rows.length > rowsMax) body.lastElementChild.remove();
    document.getElementById("tail-waiting").hidden = body.rows.length > 0;
    count();
  }

  function showProblem(reason) {
    problem.hidden = false;
    document.getElementById("tail-reason").textContent = reason;
  }

  function receive(message) {
    lastReceived = Date.now();
    if (message.type === "refused") {
      showProblem(message.reason);
      enabled = false;
      return;
    }
    received = { seen: message.seen, leftOut: message.dropped + message.skipped };
    shown += message.rows.length;
    queued.push(...message.rows);
    if (!isDrawScheduled) {
      isDrawScheduled = true;
      requestAnimationFrame(draw);
    }
    if (message.type === "lost") {
      showProblem(message.reason);
      setState("stale");
      return;
    }
    problem.hidden = message.failures.length === 0;
    if (!problem.hidden) showProblem(message.failures.map((failure) => `${failure.broker}: ${failure.reason}`).join(" "));
    setState(isPaused() ? "paused" : "live");
  }

  const isPaused = () => pause.getAttribute("aria-pressed") === "true";

  function connect() {
    if (state.dataset.state !== "lost") setState("connecting");
    const address = new URL(box.dataset.feed, location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(address);
    socket.onopen = () => {
      retries = 0;
      lastReceived = Date.now();
      if (isPaused()) socket.send(JSON.stringify({ paused: true }));
    };
    socket.onmessage = (event) => receive(JSON.parse(event.data));
    socket.onclose = (event) => {
      socket = null;
      ended.seen += received.seen;
      ended.leftOut += received.leftOut;
      received = { seen: 0, leftOut: 0 };
      if (event.code === 4401) location.reload(); // the session ended: sign in again
      else if (!enabled) showStopped();
      else {
        setState("lost");
        setTimeout(() => enabled && socket === null && connect(), RETRY_MS[Math.min(retries, RETRY_MS.length - 1)]);
        retries += 1;
      }
    };
  }

  function showStopped() {
    setState("still");
    stop.textContent = stop.dataset.textStart;
    pause.disabled = true;
  }

  pause.addEventListener("click", () => {
    pause.setAttribute("aria-pressed", String(!isPaused()));
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ paused: isPaused() }));
    if (socket) setState(isPaused() ? "paused" : "live");
  });
  stop.addEventListener("click", () => {
    enabled = !enabled;
    if (!enabled) {
      if (socket) socket.close();
      else showStopped();
      return;
    }
    stop.textContent = stop.dataset.textStop;
    pause.disabled = false;
    connect();
  });
  document.getElementById("tail-clear").addEventListener("click", () => {
    body.replaceChildren();
    shown = 0;
    draw();
  });
  setInterval(() => {
    const silent = Date.now() - lastReceived > SILENT_MS;
    if (silent && (state.dataset.state === "live" || state.dataset.state === "paused")) setState("stale");
  }, 1000);

  document.getElementById("tail-tools").hidden = false;
  connect();
})();
