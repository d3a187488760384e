// Swagger UI has a class for its dark colours; the page's theme sets the class.
(() => {
  const root = document.documentElement;
  const follow = () => root.classList.toggle("dark-mode", root.dataset.bsTheme === "dark");
  root.addEventListener("themechange", follow);
  follow();
})();
