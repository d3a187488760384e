// Zoom of the drawing of a journey: the drawing becomes wider than its frame, which scrolls.
(() => {
  const frame = document.querySelector(".journey-scroll");
  const buttons = document.querySelector(".journey-zoom");
  if (!frame || !buttons) return;
  const drawing = frame.querySelector(".journey");
  const FACTOR = 1.5;
  const ZOOM_MAX = 40;
  let zoom = 1;

  // The time in the middle of the frame stays there.
  const show = (wanted) => {
    const middle = (frame.scrollLeft + frame.clientWidth / 2) / frame.scrollWidth;
    zoom = Math.min(ZOOM_MAX, Math.max(1, wanted));
    drawing.style.width = `${zoom * 100}%`;
    frame.scrollLeft = middle * frame.scrollWidth - frame.clientWidth / 2;
    buttons.querySelector("[data-zoom=out]").disabled = zoom === 1;
    buttons.querySelector("[data-zoom=in]").disabled = zoom === ZOOM_MAX;
  };

  const turn = { in: () => show(zoom * FACTOR), out: () => show(zoom / FACTOR), fit: () => show(1) };
  const keys = { "+": "in", "=": "in", "-": "out", 0: "fit" };

  buttons.addEventListener("click", (event) => turn[event.target.closest("[data-zoom]")?.dataset.zoom]?.());
  frame.addEventListener("keydown", (event) => {
    const name = keys[event.key];
    if (!name || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    turn[name]();
  });
  buttons.hidden = false;
  show(1);
})();
