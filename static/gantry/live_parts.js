// Reloads the parts of a page: after each message of its feed, and by a poll while the feed or
// Redis behind it is down. Without scripts, the page shows the state at load time.
(() => {
  const frame = document.querySelector("[data-live-feed]");
  if (!frame) return;
  const POLL_MS = 2000;
  const REFRESH_MS_MIN = 500;
  const RECONNECT_MS_MAX = 30000;
  let socket = null;
  let reconnectMs = 1000;
  let refreshedAt = 0;
  let waiting = 0;

  const lost = frame.querySelector("[role=status]");

  const parts = () => [...document.querySelectorAll("[data-live-part]")];
  // A part that cannot change by itself, such as an ended job, is not polled.
  const canChange = () => parts().some((part) => part.dataset.active !== "no");

  // Immediately after a long enough interval, else once at the end of the interval.
  const refresh = () => {
    if (waiting || document.hidden) return;
    const rest = Math.max(0, refreshedAt + REFRESH_MS_MIN - Date.now());
    waiting = setTimeout(() => {
      waiting = 0;
      refreshedAt = Date.now();
      for (const part of parts()) part.dispatchEvent(new Event("part-changed"));
    }, rest);
  };

  const connect = () => {
    const address = new URL(frame.dataset.liveFeed, location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(address);
    socket.addEventListener("open", () => {
      reconnectMs = 1000;
      lost.hidden = true;
      refresh(); // changes before the socket was open
    });
    socket.addEventListener("message", (event) => {
      const { redis } = JSON.parse(event.data);
      if (redis) lost.hidden = redis === "back";
      refresh();
    });
    socket.addEventListener("close", (event) => {
      socket = null;
      lost.hidden = false;
      if (event.code >= 4400 && event.code < 4500) return; // signed out, or no such cluster
      setTimeout(connect, reconnectMs);
      reconnectMs = Math.min(reconnectMs * 2, RECONNECT_MS_MAX);
    });
  };

  setInterval(() => {
    const isLive = socket?.readyState === WebSocket.OPEN && lost.hidden;
    if (!isLive && canChange()) refresh();
  }, POLL_MS);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refresh();
  });
  connect();
})();
