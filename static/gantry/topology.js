// The live topology: zoom, pan, highlighted neighbours, and movement by arrow keys. The server draws
// the picture; every refresh replaces changed elements only, so focus and scroll position remain.
(() => {
  const root = document.getElementById("topology");
  const ZOOM_STEP = 1.25;
  const ZOOM_MIN = 0.2;
  const ZOOM_MAX = 3;
  const READABLE_MIN = 0.65; // first zoom on a narrow screen: scroll instead of tiny texts
  const DRAG_MIN_PX = 4;
  let zoom = null; // null: the drawing fits the width of the window, while readable
  let pointed = null;

  const svg = () => document.getElementById("topology-svg");
  const scroller = () => document.getElementById("topology-scroll");
  const nodes = () => [...root.querySelectorAll("[data-node]")];
  const clamp = (value) => Math.min(ZOOM_MAX, Math.max(ZOOM_MIN, value));

  function fitting() {
    const style = getComputedStyle(scroller());
    const room = scroller().clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return Math.min(1, Math.max(ZOOM_MIN, room / svg().viewBox.baseVal.width));
  }

  const readable = () => Math.max(fitting(), READABLE_MIN);

  function applyZoom() {
    if (!svg()) return;
    const width = svg().viewBox.baseVal.width * (zoom ?? readable());
    root.style.setProperty("--topology-width", `${Math.round(width)}px`);
  }

  // Keeps the point (x, y) of the window in place.
  function zoomTo(value, x, y) {
    const box = scroller();
    const before = svg().getBoundingClientRect();
    zoom = clamp(value);
    applyZoom();
    const after = svg().getBoundingClientRect();
    const ratio = after.width / before.width;
    box.scrollLeft += (x - before.left) * ratio - (x - after.left);
    box.scrollTop += (y - before.top) * ratio - (y - after.top);
  }

  function zoomBy(factor) {
    const place = scroller().getBoundingClientRect();
    const x = place.left + place.width / 2;
    zoomTo((zoom ?? readable()) * factor, x, place.top + place.height / 2);
  }

  // Highlights the node under the pointer or with the keyboard focus, its edges and neighbours.
  function trace() {
    const drawing = svg();
    if (!drawing) return;
    const active = drawing.contains(document.activeElement)
      ? document.activeElement.closest("[data-node]")
      : null;
    const center = document.getElementById(pointed ?? "") ?? (active?.matches(":focus-visible") ? active : null);
    drawing.classList.toggle("tracing", center !== null);
    const near = new Set(center ? [center.id] : []);
    for (const edge of drawing.querySelectorAll("[data-ends]")) {
      const ends = edge.dataset.ends.split(" ");
      const touches = center !== null && ends.includes(center.id);
      edge.classList.toggle("near", touches);
      if (touches) for (const end of ends) near.add(end);
    }
    for (const node of nodes()) node.parentNode.classList.toggle("near", near.has(node.id));
  }

  function neighbourIds(id) {
    const ends = [...root.querySelectorAll("[data-ends]")].map((edge) => edge.dataset.ends.split(" "));
    return new Set(ends.filter((pair) => pair.includes(id)).flat());
  }

  const place = (node) => ({ x: Number(node.dataset.x), y: Number(node.dataset.y) });

  // Up and down: the next node of the column. Left and right: the nearest connected node of the
  // nearest column in this direction, or the nearest node without a connected one.
  function next(from, key) {
    const here = place(from);
    const others = nodes().filter((node) => node !== from);
    if (key === "ArrowUp" || key === "ArrowDown") {
      const sign = key === "ArrowUp" ? -1 : 1;
      const column = others.filter((node) => place(node).x === here.x && (place(node).y - here.y) * sign > 0);
      return column.sort((a, b) => (place(a).y - place(b).y) * sign)[0];
    }
    const sign = key === "ArrowLeft" ? -1 : 1;
    const beside = others.filter((node) => (place(node).x - here.x) * sign > 0);
    const connected = neighbourIds(from.id);
    const linked = beside.filter((node) => connected.has(node.id));
    const distance = (node) => Math.abs(place(node).x - here.x) * 1000 + Math.abs(place(node).y - here.y);
    return (linked.length ? linked : beside).sort((a, b) => distance(a) - distance(b))[0];
  }

  root.addEventListener("keydown", (event) => {
    const node = event.target.closest("[data-node]");
    if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow")) {
      event.preventDefault();
      next(node, event.key)?.focus();
    } else if (event.key.toLowerCase() === "f" && node.dataset.focusUrl) {
      location.href = new URL(node.dataset.focusUrl, location.href);
    }
  });

  root.addEventListener("click", (event) => {
    const button = event.target.closest("[data-zoom]");
    if (!button) return;
    if (button.dataset.zoom === "fit") zoomTo(fitting(), 0, 0);
    else zoomBy(button.dataset.zoom === "in" ? ZOOM_STEP : 1 / ZOOM_STEP);
  });

  root.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey || !event.target.closest("#topology-scroll")) return;
      event.preventDefault();
      zoomTo((zoom ?? readable()) * (event.deltaY < 0 ? ZOOM_STEP : 1 / ZOOM_STEP), event.clientX, event.clientY);
    },
    { passive: false },
  );

  // Pan by mouse; touch screens and keyboards scroll the container.
  let drag = null;
  root.addEventListener("pointerdown", (event) => {
    const box = event.target.closest("#topology-scroll");
    if (!box || event.button !== 0 || event.pointerType !== "mouse") return;
    drag = { x: event.clientX, y: event.clientY, left: box.scrollLeft, top: box.scrollTop, moved: false };
  });
  window.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    drag.moved ||= Math.hypot(dx, dy) > DRAG_MIN_PX;
    if (!drag.moved) return;
    scroller().classList.add("dragging");
    scroller().scrollLeft = drag.left - dx;
    scroller().scrollTop = drag.top - dy;
  });
  window.addEventListener("pointerup", () => {
    if (!drag) return;
    if (drag.moved) {
      // The click after a drag must not open an object.
      window.addEventListener("click", stop, { capture: true, once: true });
      setTimeout(() => window.removeEventListener("click", stop, { capture: true }), 0);
    }
    scroller()?.classList.remove("dragging");
    drag = null;
  });
  function stop(event) {
    event.preventDefault();
    event.stopPropagation();
  }
  root.addEventListener("dragstart", (event) => {
    if (event.target.closest("#topology-scroll")) event.preventDefault();
  });

  root.addEventListener("pointerover", (event) => {
    const node = event.pointerType === "mouse" ? event.target.closest("[data-node]") : null;
    const id = node?.id ?? null;
    if (id === pointed) return;
    pointed = id;
    trace();
  });
  root.addEventListener("pointerleave", () => {
    pointed = null;
    trace();
  });
  root.addEventListener("focusin", trace);
  root.addEventListener("focusout", () => requestAnimationFrame(trace));

  function refresh() {
    for (const button of root.querySelectorAll("[data-zoom][hidden]")) button.hidden = false;
    applyZoom();
    trace();
  }
  // A node that moves in the document loses the focus.
  let focused = null;
  document.addEventListener("htmx:before:swap", () => {
    focused = svg()?.contains(document.activeElement) ? document.activeElement.id : null;
  });
  document.addEventListener("htmx:after:swap", () => {
    const node = focused && document.getElementById(focused);
    if (node && node !== document.activeElement) node.focus({ preventScroll: true });
    focused = null;
    refresh();
  });
  window.addEventListener("resize", applyZoom);
  refresh();
})();
