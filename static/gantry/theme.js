// Runs before the first paint, so that the automatic theme does not flash.
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  if (root.dataset.theme !== "auto") return;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => {
    if (dark.matches) root.dataset.bsTheme = "dark";
    else delete root.dataset.bsTheme;
    root.dispatchEvent(new Event("themechange"));
  };
  follow();
  dark.addEventListener("change", follow);
})();
