// Shared by all pages: relative times, copy buttons, menus, keyboard, network errors.
// Pages are complete without scripts.
(() => {
  const text = document.body.dataset;
  const UNITS_MS = [1000, 60_000, 3_600_000, 86_400_000];
  const unitTexts = text.textUnits.split("|");

  // Times: <time data-ms="…"> shows the elapsed time by the server's clock. The page's time is that of
  // its answer, however late the script runs.
  const [loading] = performance.getEntriesByType("navigation");
  const serverAhead = Number(text.nowMs) - (performance.timeOrigin + loading.responseStart);

  function ago(ms) {
    const passed = Date.now() + serverAhead - ms;
    const length = Math.abs(passed);
    if (length < 2000) return text.textNow;
    let unit = 0;
    while (unit < 3 && length >= UNITS_MS[unit + 1]) unit += 1;
    const amount = unitTexts[unit].replace("{count}", Math.floor(length / UNITS_MS[unit]));
    return (passed > 0 ? text.textAgo : text.textAhead).replace("{amount}", amount);
  }

  function refreshTimes() {
    if (document.hidden) return;
    for (const time of document.querySelectorAll("time[data-ms]")) {
      const shown = ago(Number(time.dataset.ms));
      if (time.textContent !== shown) time.textContent = shown;
    }
  }
  setInterval(refreshTimes, 1000);

  // On a phone, the areas scroll sideways: begin with the area of the page.
  const area = document.querySelector(".nav-areas [aria-current]");
  if (area) {
    const strip = area.closest(".nav-areas");
    const [left, width] = [area.getBoundingClientRect().left, area.offsetWidth];
    strip.scrollLeft = left - strip.getBoundingClientRect().left - (strip.clientWidth - width) / 2;
  }

  function note(message) {
    const line = document.createElement("div");
    line.className = "toast-note";
    line.textContent = message;
    document.getElementById("toasts").append(line);
    setTimeout(() => line.remove(), 4000);
  }

  // Copy buttons are hidden without scripts.
  function showCopyButtons() {
    for (const button of document.querySelectorAll("[data-copy][hidden]")) button.hidden = false;
  }

  async function copy(value) {
    try {
      await navigator.clipboard.writeText(value);
    } catch {
      // No clipboard API without HTTPS: copy from a temporary text field.
      const field = document.createElement("textarea");
      field.value = value;
      field.className = "visually-hidden";
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
    }
    note(text.textCopied);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) copy(button.dataset.copy);
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      for (const menu of document.querySelectorAll("details.menu[open]")) {
        menu.open = false;
        menu.querySelector("summary").focus();
      }
    }
    const tab = event.target.closest(".tabs a");
    if (tab && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
      const tabs = [...tab.parentElement.querySelectorAll("a")];
      const step = event.key === "ArrowRight" ? 1 : -1;
      tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length].focus();
    }
    const typing = event.target.closest("input, textarea, select");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      const search = document.querySelector('[data-focus="/"]');
      if (search) {
        event.preventDefault();
        search.focus();
        search.select();
      }
    }
  });

  // After a network error, htmx keeps the old fragment; show the error.
  let lastFailure = 0;
  document.addEventListener("htmx:error", () => {
    if (Date.now() - lastFailure > 10_000) note(text.textFailed);
    lastFailure = Date.now();
  });
  // A table wider than the container is scrollable by keyboard.
  const reachWideTables = () => {
    for (const place of document.querySelectorAll(".table-wrap")) {
      const scrolls =
        place.scrollWidth > place.clientWidth || place.scrollHeight > place.clientHeight;
      if (scrolls) place.tabIndex = 0;
      else place.removeAttribute("tabindex");
    }
  };
  window.addEventListener("resize", reachWideTables);
  document.addEventListener("htmx:after:swap", () => {
    showCopyButtons();
    refreshTimes();
    reachWideTables();
  });
  showCopyButtons();
  reachWideTables();
})();
