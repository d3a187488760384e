// Selecting rows of a table in a form: the box in the head selects all, a line counts them, and the
// buttons that say so need at least one. Without scripts the boxes work, and the server says when
// none is set.
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
