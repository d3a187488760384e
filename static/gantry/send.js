// Shows of the form only what belongs to the chosen type; without scripts all of it is there.
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
