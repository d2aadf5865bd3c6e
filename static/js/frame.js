/* What makes every page quicker: toasts, copying, keys. */

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const on = (kind, act) => document.addEventListener(kind, act);
const clone = (template) => template.content.firstElementChild.cloneNode(true);

/* Toasts: ten seconds, longer while the pointer or the focus rests on one. */

const LIFE = 10000;

function expire(toast) {
  let timer;
  const start = () => { timer = setTimeout(() => toast.remove(), LIFE); };
  const stop = () => clearTimeout(timer);
  toast.addEventListener("pointerenter", stop);
  toast.addEventListener("pointerleave", start);
  toast.addEventListener("focusin", stop);
  toast.addEventListener("focusout", start);
  start();
}

function toast({ text, level = "info", undo = "", retry = null }) {
  const made = clone($("template#toast"));
  const form = $("form", made);
  $("span", made).textContent = text;
  made.dataset.level = level;
  if (undo) {
    form.action = undo;
    form.elements.next.value = location.pathname + location.search;
  } else if (retry) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = words().retry;
    button.addEventListener("click", () => { made.remove(); retry(); });
    form.replaceWith(button);
  } else {
    form.remove();
  }
  $("#toasts").append(made);
  expire(made);
}

const words = () => $("#toasts").dataset;

on("toast", (event) => event.detail.items.forEach(toast));

/* What went wrong between the browser and the server. */

function putBack(element) {
  if (element.matches("input[type=checkbox]")) element.checked = !element.checked;
}

const saidFor = (status) => words()[{ 403: "forbidden", 404: "gone", 410: "gone" }[status]] || `${words().failed} (${status})`;

on("htmx:responseError", ({ detail }) => {
  putBack(detail.elt);
  if ((detail.xhr.getResponseHeader("HX-Trigger") || "").includes('"toast"')) return;
  const id = detail.xhr.getResponseHeader("x-request-id");
  toast({ text: saidFor(detail.xhr.status) + (id ? ` · ${id}` : ""), level: "error" });
});

on("htmx:beforeRequest", (event) => {
  if (document.hidden && event.target.matches("[hx-trigger^=every]")) event.preventDefault();
});

on("htmx:sendError", ({ detail }) => {
  const element = detail.elt;
  const kind = detail.requestConfig.triggeringEvent?.type || "click";
  const wanted = element.checked;
  putBack(element);
  const retry = () => {
    element.checked = wanted;
    htmx.trigger(element, kind);
  };
  toast({ text: words().offline, level: "error", retry });
});

/* What was pressed stays where it was, whatever comes or goes above it, and in sight. */

const focusTop = () => document.activeElement.getBoundingClientRect().top;
let focused = {};

on("htmx:beforeSwap", () => { focused = { id: document.activeElement.id, top: focusTop() }; });
on("htmx:afterSwap", () => {
  const now = document.activeElement;
  if (!focused.id || focused.id !== now.id) return;
  scrollBy(0, focusTop() - focused.top);
  now.scrollIntoView({ block: "nearest" });
});

/* Between pages: the drawer closes, the page takes a stray focus. */

on("htmx:afterSettle", ({ detail }) => {
  $("#problems", detail.elt)?.focus();
  if (detail.target?.id !== "main") return;
  for (const open of $$("#side:popover-open, #find:popover-open")) open.hidePopover();
  if (!$("#main :focus")) $("#main").focus({ preventScroll: true });
});

/* Copy: data-copy names the element, or data-copy-text carries the text. */

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
  for (const menu of $$("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

/* Keys. An input method's keys belong to it: Enter there chooses a word and sends nothing. */

const typing = (element) => element.matches("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");

for (const kind of ["keydown", "input"]) {
  document.addEventListener(kind, (event) => {
    if (event.isComposing || event.keyCode === 229) event.stopPropagation();
  }, true);
}

on("compositionend", (event) => {
  event.target.dispatchEvent(new Event("input", { bubbles: true }));
});

function search() {
  const box = $("#main input[type=search]");
  if (box) box.focus();
  else $("#find")?.showPopover();
}

let goUntil = 0;

function shortcut(key) {
  if (Date.now() < goUntil) {
    goUntil = 0;
    const link = $(`#nav [data-go="${CSS.escape(key)}"]`);
    if (link) return link.click();
  }
  if (key === "/") search();
  else if (key === "?") $("#help")?.showPopover();
  else if (key === "g") goUntil = Date.now() + 1500;
  else return null;
  return true;
}

on("keydown", (event) => {
  if (event.key === "Escape") event.target.closest?.("details.menu[open]")?.removeAttribute("open");
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (shortcut(event.key) === true) event.preventDefault();
});

/* Find or go to: typing narrows the list, Enter opens the first. */

on("input", (event) => {
  if (!event.target.matches("[data-find]")) return;
  const wanted = event.target.value.trim().toLowerCase();
  for (const entry of $$("#find .nav > *")) {
    entry.hidden = wanted !== "" && !(entry.matches("a") && entry.textContent.toLowerCase().includes(wanted));
  }
});

on("keydown", (event) => {
  if (!event.target.matches("[data-find]")) return;
  if (event.key === "Escape") event.target.blur();
  if (event.key === "Enter") $("#find .nav a:not([hidden])")?.click();
});

for (const shown of $$("#toasts > .toast")) expire(shown);
window.frameParts = { $, $$, on, words, clone };
