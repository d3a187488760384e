// The box in a table's head that selects all rows of the page. Without scripts it stays hidden.
"use strict";
for (const table of document.querySelectorAll("table[data-selectable]")) {
  const all = table.querySelector("[data-select-all]");
  const boxes = [...table.querySelectorAll("tbody input[type=checkbox]")];
  const show = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    all.checked = chosen === boxes.length;
    all.indeterminate = chosen > 0 && chosen < boxes.length;
  };
  all.hidden = false;
  all.addEventListener("change", () => {
    for (const box of boxes) box.checked = all.checked;
  });
  table.addEventListener("change", show);
  show();
}
