// The search box of every page. Ctrl-K or the button in the top bar opens the box; arrows select,
// Enter opens, Esc closes. The <dialog> element traps the focus.
(() => {
  const palette = document.getElementById("palette");
  if (!palette) return;
  const box = document.getElementById("palette-text");
  const list = document.getElementById("palette-list");
  const status = document.getElementById("palette-status");
  const WAIT_MS = 120;
  let timer = null;
  let asking = null;
  let chosen = -1;

  function choose(index) {
    const options = list.querySelectorAll('[role="option"]');
    if (options.length === 0) {
      chosen = -1;
      box.removeAttribute("aria-activedescendant");
      return;
    }
    chosen = (index + options.length) % options.length;
    options.forEach((option, number) => option.setAttribute("aria-selected", String(number === chosen)));
    box.setAttribute("aria-activedescendant", options[chosen].id);
    options[chosen].scrollIntoView({ block: "nearest" });
  }

  function part(className, text) {
    const span = document.createElement("span");
    span.className = className;
    span.textContent = text;
    return span;
  }

  function show(items) {
    list.replaceChildren();
    items.forEach((item, number) => {
      const option = document.createElement("li");
      option.id = `palette-${number}`;
      option.role = "option";
      option.dataset.url = item.url;
      option.append(part("badge bg-secondary-lt", item.kind_title), part("finding-title", item.title));
      if (item.note) option.append(part("text-secondary", item.note));
      list.append(option);
    });
    status.textContent = items.length
      ? palette.dataset.textCount.replace("{count}", items.length)
      : palette.dataset.textNone;
    choose(0);
  }

  async function ask() {
    asking?.abort();
    asking = new AbortController();
    const address = new URL(palette.dataset.search, location.href);
    address.searchParams.set("q", box.value);
    try {
      const answer = await fetch(address, {
        headers: { Accept: "application/json" },
        signal: asking.signal,
      });
      if (answer.status === 401) location.reload();
      if (!answer.ok) throw new Error(answer.statusText);
      show((await answer.json()).items);
    } catch (fault) {
      if (fault.name !== "AbortError") status.textContent = palette.dataset.textFailed;
    }
  }

  function go(option) {
    if (option) location.assign(option.dataset.url);
  }

  function open() {
    if (palette.open) return;
    palette.showModal();
    box.select();
    ask();
  }

  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey) {
      event.preventDefault();
      if (palette.open) palette.close();
      else open();
    }
  });
  document.getElementById("palette-open")?.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, WAIT_MS);
  });
  box.addEventListener("keydown", (event) => {
    const options = list.querySelectorAll('[role="option"]');
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Enter" && options[chosen] && !event.isComposing) go(options[chosen]);
    else return;
    event.preventDefault();
  });
  list.addEventListener("click", (event) => go(event.target.closest('[role="option"]')));
  palette.addEventListener("click", (event) => {
    if (event.target === palette) palette.close(); // a click outside of the box
  });
})();
