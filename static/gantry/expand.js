// Message rows open in place: a button in the row fetches the message below the row.
// Without scripts, the message ID leads to the page of the message.
(() => {
  const COLUMNS_MAX = 20;

  function showButtons() {
    for (const button of document.querySelectorAll("[data-expand][hidden]")) button.hidden = false;
  }

  function place(button) {
    const row = button.closest("tr");
    const below = row.nextElementSibling;
    if (below?.classList.contains("peek-row")) return below;
    const fresh = document.createElement("tr");
    fresh.className = "peek-row";
    const cell = document.createElement("td");
    cell.colSpan = Math.min(row.cells.length, COLUMNS_MAX);
    fresh.append(cell);
    row.after(fresh);
    htmx.ajax("GET", button.dataset.expand, { target: cell, swap: "innerHTML" });
    return fresh;
  }

  function toggle(button) {
    const opens = button.getAttribute("aria-expanded") === "false";
    button.setAttribute("aria-expanded", String(opens));
    place(button).hidden = !opens;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-expand]");
    if (button) {
      toggle(button);
      return;
    }
    // A click on the body opens the row too, except while text is selected.
    const preview = event.target.closest(".message-rows td.preview");
    const own = preview?.closest("tr").querySelector("[data-expand]");
    if (own && !String(window.getSelection())) toggle(own);
  });
  document.addEventListener("htmx:after:swap", showButtons);
  showButtons();
})();
