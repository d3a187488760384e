// A live tail: rows come over a WebSocket and the newest stands first. The page keeps a bounded
// number of them, also when the tail is stopped or the connection is lost.
(() => {
  const box = document.getElementById("tail");
  const state = document.getElementById("tail-state");
  const body = document.getElementById("tail-rows");
  const trouble = document.getElementById("tail-trouble");
  const pause = document.getElementById("tail-pause");
  const stop = document.getElementById("tail-stop");
  const rowsMax = Number(box.dataset.rowsMax);
  const RETRY_MS = [1000, 2000, 4000, 8000];
  const SILENT_MS = 4000;

  const clock = new Intl.DateTimeFormat("sv-SE", {
    timeZone: box.dataset.zone,
    ...{ year: "numeric", month: "2-digit", day: "2-digit" },
    ...{ hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 },
  });
  const ended = { seen: 0, leftOut: 0 }; // what connections before this one counted
  let heard = { seen: 0, leftOut: 0 };
  let shown = 0;
  let socket = null;
  let wanted = true;
  let retries = 0;
  let lastHeard = 0;
  let waiting = [];
  let drawing = false;

  function say(name) {
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
    const values = { shown, seen: ended.seen + heard.seen, left_out: ended.leftOut + heard.leftOut };
    for (const element of box.querySelectorAll("[data-count]")) {
      element.textContent = values[element.dataset.count].toLocaleString("en");
    }
  }

  // All that came since the last frame is drawn at once.
  function draw() {
    drawing = false;
    const fresh = waiting.slice(-rowsMax);
    waiting = [];
    const lines = document.createDocumentFragment();
    for (const row of fresh.reverse()) lines.append(line(row));
    body.prepend(lines);
    while (body.rows.length > rowsMax) body.lastElementChild.remove();
    document.getElementById("tail-waiting").hidden = body.rows.length > 0;
    count();
  }

  function lost(reason) {
    trouble.hidden = false;
    document.getElementById("tail-reason").textContent = reason;
  }

  function hear(message) {
    lastHeard = Date.now();
    if (message.type === "refused") {
      lost(message.reason);
      wanted = false;
      return;
    }
    heard = { seen: message.seen, leftOut: message.dropped + message.skipped };
    shown += message.rows.length;
    waiting.push(...message.rows);
    if (!drawing) {
      drawing = true;
      requestAnimationFrame(draw);
    }
    if (message.type === "lost") {
      lost(message.reason);
      say("stale");
      return;
    }
    trouble.hidden = message.failures.length === 0;
    if (!trouble.hidden) lost(message.failures.map((each) => `${each.broker}: ${each.reason}`).join(" "));
    say(isPaused() ? "paused" : "live");
  }

  const isPaused = () => pause.getAttribute("aria-pressed") === "true";

  function connect() {
    if (state.dataset.state !== "lost") say("connecting");
    const address = new URL(box.dataset.feed, location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(address);
    socket.onopen = () => {
      retries = 0;
      lastHeard = Date.now();
      if (isPaused()) socket.send(JSON.stringify({ paused: true }));
    };
    socket.onmessage = (event) => hear(JSON.parse(event.data));
    socket.onclose = (event) => {
      socket = null;
      ended.seen += heard.seen;
      ended.leftOut += heard.leftOut;
      heard = { seen: 0, leftOut: 0 };
      if (event.code === 4401) location.reload(); // the session ended: sign in again
      else if (!wanted) rest();
      else {
        say("lost");
        setTimeout(() => wanted && socket === null && connect(), RETRY_MS[Math.min(retries, RETRY_MS.length - 1)]);
        retries += 1;
      }
    };
  }

  function rest() {
    say("still");
    stop.textContent = stop.dataset.textStart;
    pause.disabled = true;
  }

  pause.addEventListener("click", () => {
    pause.setAttribute("aria-pressed", String(!isPaused()));
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ paused: isPaused() }));
    if (socket) say(isPaused() ? "paused" : "live");
  });
  stop.addEventListener("click", () => {
    wanted = !wanted;
    if (!wanted) {
      if (socket) socket.close();
      else rest();
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
    const silent = Date.now() - lastHeard > SILENT_MS;
    if (silent && (state.dataset.state === "live" || state.dataset.state === "paused")) say("stale");
  }, 1000);

  document.getElementById("tail-tools").hidden = false;
  connect();
})();
