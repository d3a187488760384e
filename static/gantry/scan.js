// A search with a filter goes on by itself until the page is full, everything was looked at, or
// somebody stops it. Each step is one request; between two of them nothing runs on the server.
(() => {
  const PAUSE_MS = 50;
  const scan = document.getElementById("scan");
  if (!scan?.dataset.next) return;
  const body = document.querySelector("#found tbody");
  const stop = scan.querySelector("button");
  const onward = scan.querySelector("a");
  const progress = scan.querySelector("progress");
  const state = {
    scanned: Number(scan.dataset.scanned),
    found: Number(scan.dataset.found),
    left: Number(scan.dataset.left),
    next: scan.dataset.next,
  };
  const most = Number(scan.dataset.most);
  let asking = null;

  function show() {
    const shown = (value) => value.toLocaleString("en");
    scan.querySelector(".scan-text").textContent = scan.dataset.text
      .replace("{scanned}", shown(state.scanned))
      .replace("{found}", shown(state.found))
      .replace("{left}", shown(state.left));
    progress.max = state.scanned + state.left;
    progress.value = state.scanned;
    onward.href = `?${state.next}`;
    onward.hidden = asking !== null || !state.next;
    stop.hidden = asking === null;
  }

  async function step(signal) {
    const answer = await fetch(`?${state.next}`, { headers: { "HX-Request": "true" }, signal });
    if (!answer.ok) throw new Error(answer.statusText);
    const part = new DOMParser().parseFromString(await answer.text(), "text/html");
    const told = part.getElementById("scan").dataset;
    state.scanned += Number(told.scanned);
    state.found += Number(told.found);
    state.left = Number(told.left);
    state.next = told.next;
    for (const row of part.querySelectorAll("tbody > tr")) body.append(document.adoptNode(row));
    document.dispatchEvent(new CustomEvent("gantry:rows"));
  }

  async function run() {
    asking = new AbortController();
    const { signal } = asking;
    const goal = state.found + (state.found % most === 0 && state.found ? most : most - (state.found % most));
    show();
    try {
      while (state.next && state.found < goal && !signal.aborted) {
        await step(signal);
        show();
        await new Promise((resume) => setTimeout(resume, PAUSE_MS));
      }
    } catch (fault) {
      if (fault.name !== "AbortError") scan.querySelector(".scan-text").textContent = scan.dataset.textFailed;
    }
    const failed = scan.querySelector(".scan-text").textContent === scan.dataset.textFailed;
    asking = null;
    if (failed) {
      stop.hidden = true;
      onward.hidden = false;
    } else show();
  }

  stop.addEventListener("click", () => asking?.abort());
  onward.addEventListener("click", (event) => {
    event.preventDefault();
    run();
  });
  if (state.found < most) run();
})();
