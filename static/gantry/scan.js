// A filtered search continues automatically until the page is full, the search is complete, or the
// user stops the search. Each step is one request; between requests nothing runs on the server.
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
  let controller = null;

  function show() {
    const shown = (value) => value.toLocaleString("en");
    scan.querySelector(".scan-text").textContent = scan.dataset.text
      .replace("{scanned}", shown(state.scanned))
      .replace("{found}", shown(state.found))
      .replace("{left}", shown(state.left));
    progress.max = state.scanned + state.left;
    progress.value = state.scanned;
    onward.href = `?${state.next}`;
    onward.hidden = controller !== null || !state.next;
    stop.hidden = controller === null;
  }

  async function step(signal) {
    const answer = await fetch(`?${state.next}`, { headers: { "HX-Request": "true" }, signal });
    if (!answer.ok) throw new Error(answer.statusText);
    const part = new DOMParser().parseFromString(await answer.text(), "text/html");
    const data = part.getElementById("scan").dataset;
    state.scanned += Number(data.scanned);
    state.found += Number(data.found);
    state.left = Number(data.left);
    state.next = data.next;
    for (const row of part.querySelectorAll("tbody > tr")) body.append(document.adoptNode(row));
    document.dispatchEvent(new CustomEvent("gantry:rows"));
  }

  async function run() {
    controller = new AbortController();
    const { signal } = controller;
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
    controller = null;
    if (failed) {
      stop.hidden = true;
      onward.hidden = false;
    } else show();
  }

  stop.addEventListener("click", () => controller?.abort());
  onward.addEventListener("click", (event) => {
    event.preventDefault();
    run();
  });
  if (state.found < most) run();
})();
