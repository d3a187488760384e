// Swagger UI inside the frame of the console: colours of the theme, and roles that its elements lack.
(() => {
  const root = document.documentElement;
  // Swagger UI has a class for its dark colours; the page's theme sets the class.
  const follow = () => root.classList.toggle("dark-mode", root.dataset.bsTheme === "dark");
  root.addEventListener("themechange", follow);
  follow();

  function repair(frame) {
    // A link inside of a button: the button opens the operation and writes its address.
    for (const link of frame.querySelectorAll("button a[href]")) link.removeAttribute("href");
    for (const select of frame.querySelectorAll("select:not([aria-label])")) {
      const title = select.closest("label, .servers, td, tr")?.querySelector(".servers-title, label span, .parameter__name");
      select.setAttribute("aria-label", (title ?? select).textContent.trim());
    }
    // Examples scroll sideways, also by the keyboard.
    for (const example of frame.querySelectorAll("pre:not([tabindex])")) example.tabIndex = 0;
  }

  const frame = document.getElementById("swagger-ui");
  if (frame) new MutationObserver(() => repair(frame)).observe(frame, { childList: true, subtree: true });
})();
