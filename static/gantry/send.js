// Shows only the form fields of the selected message type; without scripts all fields are shown.
(() => {
  const type = document.getElementById("id_type");
  function show() {
    for (const part of document.querySelectorAll("[data-types]")) {
      part.hidden = !part.dataset.types.split(" ").includes(type.value);
    }
  }
  type.addEventListener("change", show);
  show();
})();
