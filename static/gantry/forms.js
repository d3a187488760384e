// Forms of pages: one request per press, and input that survives the end of a session.
(() => {
  const KEY = "gantry-draft";
  // A form is sent again at the earliest after this time, when its page has not gone.
  const PAUSE_MS = 5_000;
  const AGE_MS_MAX = 3_600_000;
  const CHARS_MAX = 500_000;
  // The state that a form was opened with: a later change by somebody else is not overwritten.
  const VERSIONS = ["version", "etag"];
  const here = location.pathname + location.search;
  const user = document.body.dataset.user || "";
  let sentAt = new WeakMap();
  // The form with input that is not sent yet.
  let edited = null;

  // Passwords, secrets and files are never kept.
  function fieldsOf(form) {
    return [...form.elements].filter(
      (field) =>
        field.name &&
        field.matches("input, textarea, select") &&
        (VERSIONS.includes(field.name) ||
          !field.matches("[type=password], [type=hidden], [type=file], [data-private]")),
    );
  }

  // Forms with other fields are other forms, even at the same place of the page.
  function signatureOf(form) {
    return [...new Set(fieldsOf(form).map((field) => field.name))].sort().join();
  }

  function isChoice(field) {
    return field.matches("[type=checkbox], [type=radio]");
  }

  function chosen(field) {
    return [...field.options].filter((option) => option.selected).map((option) => option.value);
  }

  function valueOf(field) {
    if (isChoice(field)) return [field.name, field.value, field.checked];
    return [field.name, field.matches("select") ? chosen(field) : field.value];
  }

  function read() {
    try {
      const draft = JSON.parse(sessionStorage.getItem(KEY));
      return draft && Date.now() - draft.at < AGE_MS_MAX ? draft : null;
    } catch {
      return null;
    }
  }

  function keep(draft) {
    try {
      const text = JSON.stringify(draft);
      if (text.length <= CHARS_MAX) sessionStorage.setItem(KEY, text);
    } catch {
      // No storage in this browser: the back button still has the input.
    }
  }

  function keepInput(form) {
    if (!user) return;
    const fields = fieldsOf(form).map(valueOf);
    // A form of buttons, such as the sign-out, has no input.
    if (fields.every(([name]) => VERSIONS.includes(name))) return forget();
    keep({
      path: here,
      user,
      at: Date.now(),
      form: [...document.forms].indexOf(form),
      signature: signatureOf(form),
      fields,
      isInterrupted: false,
    });
  }

  function forget() {
    try {
      sessionStorage.removeItem(KEY);
    } catch {
      // As above.
    }
  }

  function fill(field, [, value, isChecked]) {
    if (isChoice(field)) field.checked = isChecked;
    else if (!field.matches("select")) field.value = value;
    else for (const option of field.options) option.selected = value.includes(option.value);
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }

  function restore(draft) {
    const form = document.forms[draft.form];
    if (!form || form.method !== "post" || signatureOf(form) !== draft.signature) return;
    const left = [...draft.fields];
    for (const field of fieldsOf(form)) {
      const fits = ([name, value, isChecked]) =>
        name === field.name && (isChecked === undefined || value === field.value);
      const place = left.findIndex(fits);
      if (place >= 0) fill(field, left.splice(place, 1)[0]);
    }
    const note = document.createElement("div");
    note.className = "alert alert-info";
    note.setAttribute("role", "status");
    note.textContent = document.body.dataset.textRestored;
    form.before(note);
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method !== "post") return;
    if (Date.now() - (sentAt.get(form) ?? -Infinity) < PAUSE_MS) {
      event.preventDefault();
      return;
    }
    sentAt.set(form, Date.now());
    edited = null;
    keepInput(form);
  });

  document.addEventListener("input", (event) => {
    const form = event.target.form;
    if (event.isTrusted && form && form.method === "post") edited = form;
  });

  // A live part of the page may find the session at its end, and lead to the sign-in page.
  window.addEventListener("pagehide", () => {
    if (edited) keepInput(edited);
  });

  // Back to the page from the browser's cache.
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) sentAt = new WeakMap();
  });

  const draft = read();
  if (!draft) {
    forget();
  } else if (document.querySelector("[data-interrupted]")) {
    keep({ ...draft, isInterrupted: true });
  } else if (!draft.isInterrupted || (user && draft.user !== user)) {
    forget();
  } else if (user && draft.path === here) {
    forget();
    restore(draft);
  }
})();
