// Row selection in a table form: the head checkbox selects all rows, a counter shows the number of
// selected rows, and buttons with data-needs-selection require a selection. Without scripts the
// checkboxes work, and the server reports an empty selection.
(() => {
  for (const form of document.querySelectorAll("form[data-selectable]")) {
    const all = form.querySelector("[data-select-all]");
    const boxes = [...form.querySelectorAll("tbody input[type=checkbox]")];
    const chosen = form.querySelector("[data-chosen]");
    const buttons = [...form.querySelectorAll("button[data-needs-selection]")];

    function show() {
      const count = boxes.filter((box) => box.checked).length;
      all.checked = count === boxes.length;
      all.indeterminate = count > 0 && count < boxes.length;
      chosen.textContent = chosen.dataset.chosen.replace("{count}", count);
      for (const button of buttons) button.disabled = count === 0;
    }

    all.hidden = false;
    chosen.hidden = false;
    all.addEventListener("change", () => {
      for (const box of boxes) box.checked = all.checked;
    });
    form.addEventListener("change", show);
    show();
  }
})();
