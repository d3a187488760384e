// Refreshes the jobs of a page: each message of the feed, or a poll while the feed is down,
// reloads the fragment. Without scripts, the page shows the state at load time.
(() => {
  const frame = document.querySelector("[data-jobs-feed]");
  if (!frame) return;
  const POLL_MS = 2000;
  const REFRESH_MS_MIN = 500;
  const RECONNECT_MS_MAX = 30000;
  let socket = null;
  let reconnectMs = 1000;
  let refreshedAt = 0;
  let waiting = 0;

  const lost = document.getElementById("jobs-lost");

  const part = () => document.getElementById("jobs-part");
  const isActive = () => part()?.dataset.active === "yes";

  // Immediately after a long enough interval, else once at the end of the interval.
  const refresh = () => {
    if (waiting || document.hidden) return;
    const rest = Math.max(0, refreshedAt + REFRESH_MS_MIN - Date.now());
    waiting = setTimeout(() => {
      waiting = 0;
      refreshedAt = Date.now();
      part()?.dispatchEvent(new Event("jobs-changed"));
    }, rest);
  };

  const connect = () => {
    const address = new URL(frame.dataset.jobsFeed, location.href);
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
    if (isActive() && socket?.readyState !== WebSocket.OPEN) refresh();
  }, POLL_MS);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refresh();
  });
  connect();
})();
