/* What makes every page quicker, and none depends on: toasts, copying, theme, keys. */
(function () {
  "use strict";

  const $ = (selector, root = document) => root.querySelector(selector);
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

  function announce(text) {
    $("#announce").textContent = text;
  }

  document.addEventListener("toast", (event) => event.detail.items.forEach(toast));

  /* What went wrong between the browser and the server. */

  function putBack(element) {
    if (element.matches("input[type=checkbox]")) element.checked = !element.checked;
  }

  function saidFor(status) {
    if (status === 403) return words().forbidden;
    if (status === 404 || status === 410) return words().gone;
    return `${words().failed} (${status})`;
  }

  document.addEventListener("htmx:responseError", ({ detail }) => {
    putBack(detail.elt);
    if ((detail.xhr.getResponseHeader("HX-Trigger") || "").includes('"toast"')) return;
    const id = detail.xhr.getResponseHeader("x-request-id");
    toast({ text: saidFor(detail.xhr.status) + (id ? ` · ${id}` : ""), level: "error" });
  });

  document.addEventListener("htmx:sendError", ({ detail }) => {
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

  /* Between pages: the drawer closes, the page takes a stray focus. */

  document.addEventListener("htmx:afterSettle", ({ detail }) => {
    if (detail.target?.id !== "main") return;
    for (const open of document.querySelectorAll("#side:popover-open, #find:popover-open")) open.hidePopover();
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

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy], [data-copy-text]");
    if (button) onCopy(button);
    event.target.closest("[data-close]")?.closest(".toast").remove();
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });

  /* Theme: shown at once, remembered by the server. */

  document.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-theme-form]");
    if (!form) return;
    event.preventDefault();
    const body = new URLSearchParams(new FormData(form, event.submitter));
    document.documentElement.dataset.theme = body.get("theme");
    for (const button of form.querySelectorAll("button")) button.ariaPressed = String(button === event.submitter);
    fetch(form.action, { method: "POST", body, redirect: "manual" });
  });

  /* Keys. An input method's keys belong to it: Enter there chooses a word and sends nothing. */

  const composing = (event) => event.isComposing || event.keyCode === 229;
  const typing = (element) => element.matches("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");

  for (const kind of ["keydown", "input"]) {
    document.addEventListener(kind, (event) => {
      if (composing(event)) event.stopPropagation();
    }, true);
  }

  document.addEventListener("compositionend", (event) => {
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

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") event.target.closest?.("details.menu[open]")?.removeAttribute("open");
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (shortcut(event.key) === true) event.preventDefault();
  });

  /* Find or go to: typing narrows the list, Enter opens the first. */

  document.addEventListener("input", (event) => {
    if (!event.target.matches("[data-find]")) return;
    const wanted = event.target.value.trim().toLowerCase();
    for (const entry of document.querySelectorAll("#find .nav > *")) {
      entry.hidden = wanted !== "" && !(entry.matches("a") && entry.textContent.toLowerCase().includes(wanted));
    }
  });

  document.addEventListener("keydown", (event) => {
    if (!event.target.matches("[data-find]")) return;
    if (event.key === "Escape") event.target.blur();
    if (event.key === "Enter") $("#find .nav a:not([hidden])")?.click();
  });

  for (const shown of document.querySelectorAll("#toasts > .toast")) expire(shown);
  window.frameParts = { toast, announce, words, clone };
})();
