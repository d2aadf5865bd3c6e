/* Every page: toasts, copying, keys. */

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const on = (kind, act) => document.addEventListener(kind, act);
const clone = (template) => template.content.firstElementChild.cloneNode(true);

/* Toasts: ten seconds, or more in use. */

function expire(toast) {
  setTimeout(() => (toast.matches(":hover, :focus-within") ? expire(toast) : toast.remove()), 10000);
}

function toast({ text, level = "info", undo, retry }) {
  const made = clone($("template#toast"));
  const form = $("form", made);
  $("span", made).textContent = text;
  made.dataset.level = level;
  if (undo) {
    form.action = undo;
    form.elements.next.value = location.pathname + location.search;
  } else if (retry) {
    const button = document.createElement("button");
    button.textContent = words().retry;
    button.onclick = () => { made.remove(); retry(); };
    form.replaceWith(button);
  } else {
    form.remove();
  }
  $("#toasts").append(made);
  expire(made);
}

const words = () => $("#toasts").dataset;

on("toast", (event) => event.detail.items.forEach(toast));

/* Failed requests. */

function putBack(element) {
  if (element.type === "checkbox") element.checked = !element.checked;
}

const saidFor = (status) => words()[{ 403: "forbidden", 404: "gone", 410: "gone" }[status]] || `${words().failed} (${status})`;

on("htmx:responseError", ({ detail }) => {
  putBack(detail.elt);
  if ((detail.xhr.getResponseHeader("HX-Trigger") || "").includes('"toast"')) return;
  const id = detail.xhr.getResponseHeader("x-request-id");
  toast({ text: saidFor(detail.xhr.status) + (id ? ` · ${id}` : ""), level: "error" });
});

on("htmx:beforeRequest", (event) => {
  const paused = document.hidden ? "[hx-trigger^=every]" : "[hx-trigger$=m]:has(:focus, [open])";
  if (event.target.matches(paused)) event.preventDefault();
});

on("htmx:sendError", ({ detail }) => {
  const element = detail.elt;
  const wanted = element.checked;
  putBack(element);
  const retry = () => {
    element.checked = wanted;
    htmx.trigger(element, detail.requestConfig.triggeringEvent?.type || "click");
  };
  toast({ text: words().offline, level: "error", retry });
});

/* The focus stays in place and in sight. */

const focusTop = () => document.activeElement.getBoundingClientRect().top;
let focused = {};

on("htmx:beforeSwap", () => { focused = { id: document.activeElement.id, top: focusTop() }; });
on("htmx:afterSwap", () => {
  const now = document.activeElement;
  if (!focused.id || focused.id !== now.id) return;
  scrollBy(0, focusTop() - focused.top);
  now.scrollIntoView({ block: "nearest" });
});

/* A second click sends no form twice. */

on("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.ariaBusy) event.preventDefault();
  form.ariaBusy = true;
  setTimeout(() => { form.ariaBusy = null; }, 8000);
});

/* Between pages: the drawer closes, the page takes a stray focus. */

on("htmx:afterSettle", ({ detail }) => {
  $("#problems", detail.elt)?.focus();
  if (detail.target?.id !== "main") return;
  $("#side:popover-open")?.hidePopover();
  if (!$("#main :focus")) $("#main").focus({ preventScroll: true });
});

/* Copy the element that data-copy names, or data-copy-text. */

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const box = document.createElement("textarea"); // plain http has no clipboard API
  box.value = text;
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
}

async function onCopy(button) {
  const source = document.getElementById(button.dataset.copy || "");
  const text = button.dataset.copyText ?? source?.value ?? source?.textContent;
  await copy(text);
  button.focus();
  toast({ text: words().copied });
}

on("click", (event) => {
  const button = event.target.closest("[data-copy], [data-copy-text]");
  if (button) onCopy(button);
  event.target.closest("[data-close]")?.closest(".toast").remove();
  if (event.target.closest("#options a")) $("#find").hidePopover();
  for (const menu of $$("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
  /* A row opens by a click. */
  const row = event.target.closest("a, button, summary, dialog, td:has(input), .table:not(.matrix) tbody tr");
  if (row?.matches("tr") && !String(getSelection())) $("th > a, th .fit > a", row)?.click();
});

/* Keys, except those of an input method. */

const typing = (element) => element.matches("input:not([type=checkbox], [type=radio]), textarea, select");

for (const kind of ["keydown", "input"]) document.addEventListener(kind, (event) => {
  if (event.isComposing || event.keyCode === 229) event.stopPropagation();
}, true);

on("compositionend", (event) => {
  event.target.dispatchEvent(new Event("input", { bubbles: true }));
});

const find = () => $("#find")?.showPopover();

let goUntil = 0;

function shortcut(key) {
  if (Date.now() < goUntil) {
    goUntil = 0;
    const link = $(`#nav [data-go="${CSS.escape(key)}"]`);
    if (link) return link.click();
  }
  const box = $("#main input[type=search]");
  if (key === "/") box ? box.focus() : find();
  else if (key === "?") $("#help")?.showPopover();
  else if (key === "g") goUntil = Date.now() + 1500;
  else return null;
  return true;
}

on("keydown", (event) => {
  if (event.key === "Escape") event.target.closest?.("details.menu[open]")?.removeAttribute("open");
  const held = event.ctrlKey || event.metaKey;
  if (held && event.key === "k") find();
  else if (held && event.key === "Enter") event.target.form?.elements.save?.click();
  else if (held || event.altKey || typing(event.target) || !shortcut(event.key)) return;
  event.preventDefault();
});

/* Find: Enter opens what was found for this very text. */

const field = $("[data-find]");
const chosen = () => $("#options [aria-selected=true]");
let opening;

function choose(option) {
  if (!option) return;
  for (const each of $$("#options a")) each.ariaSelected = each === option;
  field.setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
  if (opening && $("#option-list").dataset.q === field.value) option.click();
}

on("focusin", ({ target }) => target === field && field.select());
on("input", () => { opening = false; });
on("htmx:afterSwap", () => choose(chosen()));
on("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1, Enter: 0 }[event.key];
  if (event.target !== field || step === undefined) return;
  event.preventDefault();
  opening = !step;
  const all = $$("#options a");
  choose(all.at((all.indexOf(chosen()) + step) % all.length));
});

$$("#toasts > .toast").forEach(expire);
window.frameParts = { $, $$, on, words, saidFor, clone };
