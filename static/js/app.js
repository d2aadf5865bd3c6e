/* Upload, the chain's order, the capability matrix: each works as a plain form without this. */
(function () {
  "use strict";

  const { announce, words, clone } = window.frameParts;
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  /* Upload: a row per file at once, real bytes in its progress, Cancel; a refusal stays in the row with its reason. */

  const mega = (bytes) => `${(bytes / 1048576).toFixed(1)} MB`;

  function rowFor(form, file) {
    const row = clone(form.querySelector("template"));
    const find = (name) => row.querySelector(`[data-${name}]`);
    find("name").textContent = file.name;
    row.querySelector("progress").ariaLabel = file.name;
    find("cancel").ariaLabel += ` ${file.name}`;
    form.querySelector("[data-upload-list]").append(row);
    return { row, find, bar: row.querySelector("progress") };
  }

  function finish({ find, bar }, form, refusal, answer) {
    bar.remove();
    find("cancel").remove();
    find("done").textContent = "";
    const mark = clone(form.querySelector(refusal ? "template[data-bad]" : "template[data-ok]"));
    if (refusal) mark.lastChild.textContent = refusal;
    find("state").replaceChildren(mark);
    if (!answer?.url) return;
    const link = document.createElement("a");
    link.href = answer.url;
    link.textContent = find("name").textContent;
    find("name").replaceChildren(link);
  }

  function parsed(request) {
    try {
      return JSON.parse(request.responseText);
    } catch {
      return {};
    }
  }

  function send(form, file) {
    const shown = rowFor(form, file);
    const limit = Number(form.dataset.maxBytes);
    if (limit && file.size > limit) return finish(shown, form, form.dataset.tooLarge.replace("{size}", mega(file.size)));
    const body = new FormData(form);
    body.set("file", file, file.name);
    const request = new XMLHttpRequest();
    request.upload.addEventListener("progress", (event) => {
      shown.bar.value = (100 * event.loaded) / event.total;
      shown.find("done").textContent = `${mega(Math.min(event.loaded, file.size))} / ${mega(file.size)}`;
    });
    request.addEventListener("load", () => {
      const answer = parsed(request);
      const refused = request.status >= 400 && (answer.message || `${words().failed} (${request.status})`);
      finish(shown, form, refused, answer);
      if (!refused) htmx.trigger(form, "uploaded", answer);
    });
    request.addEventListener("error", () => finish(shown, form, form.dataset.lost));
    request.addEventListener("abort", () => shown.row.remove());
    shown.find("cancel").addEventListener("click", () => request.abort());
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "application/json");
    request.send(body);
    return request;
  }

  const sendAll = (form, files) => [...files].forEach((file) => send(form, file));
  const uploadOf = (event) => event.target.closest("[data-upload]");

  document.addEventListener("change", (event) => {
    const form = uploadOf(event);
    if (!form || event.target.type !== "file") return;
    sendAll(form, event.target.files);
    event.target.value = "";
  });

  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      const area = event.target.closest?.(".drop");
      if (!area) return;
      event.preventDefault();
      area.classList.toggle("over", kind === "dragover");
      if (kind === "drop") sendAll(uploadOf(event), event.dataTransfer.files);
    });
  }

  document.addEventListener("paste", (event) => {
    const form = document.querySelector("#main [data-upload]");
    const files = event.clipboardData?.files || [];
    if (form && files.length) sendAll(form, files);
  });

  /* A chain: drag by the grip, or the up and down buttons; what stands between the cards keeps its place. */

  const cards = (list) => [...list.children].filter((child) => child.matches("[data-item]"));
  const between = new WeakMap();

  function interleave(list, ordered) {
    const hops = between.get(list);
    list.replaceChildren(...ordered.flatMap((card, place) => (hops[place] ? [card, hops[place]] : [card])), ...hops.slice(ordered.length));
    ordered.forEach((card, place) => renumber(card, place, ordered.length));
  }

  function renumber(card, place, count) {
    const number = card.querySelector(".pos");
    if (number) number.textContent = place + 1;
    for (const button of $$("[data-move]", card)) {
      button.disabled = button.dataset.move === "up" ? place === 0 : place === count - 1;
    }
  }

  function moved(list, card) {
    const ordered = cards(list);
    const place = ordered.indexOf(card) + 1;
    announce(words().moved.replace("{name}", card.dataset.name).replace("{place}", place).replace("{count}", ordered.length));
    htmx.trigger(list, "reorder");
  }

  function step(button) {
    const card = button.closest("[data-item]");
    const list = card.parentElement;
    const ordered = cards(list);
    const from = ordered.indexOf(card);
    const to = from + (button.dataset.move === "up" ? -1 : 1);
    if (to < 0 || to >= ordered.length) return;
    ordered.splice(to, 0, ordered.splice(from, 1)[0]);
    interleave(list, ordered);
    const next = button.disabled ? card.querySelector("[data-move]:not([disabled])") : button;
    next?.focus();
    moved(list, card);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-sortable] [data-move]");
    if (!button) return;
    event.preventDefault();
    step(button);
  });

  function makeSortable(list) {
    between.set(list, [...list.children].filter((child) => !child.matches("[data-item]")));
    Sortable.create(list, {
      handle: ".grip",
      draggable: "[data-item]",
      animation: matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 120,
      onEnd: ({ item }) => {
        interleave(list, cards(list));
        moved(list, item);
      },
    });
  }

  /* The matrix: one tab stop; arrows go to the nearest control, Home and End to the ends of the row. */

  const STOPS = ".cell, th a, th button, td button";
  const stops = (row) => $$(STOPS, row).filter((stop) => stop.offsetParent);
  const middle = (element) => {
    const { left, width } = element.getBoundingClientRect();
    return left + width / 2;
  };

  function nearest(row, from) {
    return stops(row).reduce((best, stop) => (!best || Math.abs(middle(stop) - from) < Math.abs(middle(best) - from) ? stop : best), null);
  }

  function target(grid, current, key) {
    const row = current.closest("tr");
    const beside = stops(row);
    const rows = $$("tr", grid).filter((one) => stops(one).length);
    const place = beside.indexOf(current);
    const other = (shift) => rows[rows.indexOf(row) + shift];
    switch (key) {
      case "ArrowLeft": return beside[place - 1];
      case "ArrowRight": return beside[place + 1];
      case "Home": return beside[0];
      case "End": return beside[beside.length - 1];
      case "ArrowUp": return other(-1) && nearest(other(-1), middle(current));
      case "ArrowDown": return other(1) && nearest(other(1), middle(current));
      default: return null;
    }
  }

  function rove(grid, current) {
    for (const stop of $$(STOPS, grid)) stop.tabIndex = stop === current ? 0 : -1;
  }

  document.addEventListener("keydown", (event) => {
    const grid = event.target.closest?.("[data-grid]");
    if (!grid || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = target(grid, event.target, event.key);
    if (!next) return;
    event.preventDefault();
    rove(grid, next);
    next.focus();
  });

  document.addEventListener("focusin", (event) => {
    const grid = event.target.closest?.("[data-grid]");
    if (grid && event.target.tabIndex === -1) rove(grid, event.target);
  });

  function prepareGrid(grid) {
    const kept = grid.contains(document.activeElement) ? document.activeElement : grid.querySelector(".cell");
    rove(grid, kept);
  }

  const inAndUnder = (root, selector) => [...(root.matches?.(selector) ? [root] : []), ...$$(selector, root)];

  htmx.onLoad((root) => {
    inAndUnder(root, "[data-sortable]").forEach(makeSortable);
    inAndUnder(root, "[data-grid]").forEach(prepareGrid);
    const grid = root.closest?.("[data-grid]");
    if (grid) prepareGrid(grid);
  });
})();
