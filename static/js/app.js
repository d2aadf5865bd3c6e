/* Upload, order, matrix: all work without. */

const { $, $$, on, saidFor, clone } = window.frameParts;

/* Upload: a row per file. */

const mega = (bytes) => `${(bytes / 1048576).toFixed(1)} MB`;

function send(form, file) {
  const row = clone($("template", form));
  const find = (name) => $(`[data-${name}]`, row);
  const bar = $("progress", row);
  const request = new XMLHttpRequest();

  function finish(refusal, url) {
    const mark = clone($(`template[data-${refusal ? "bad" : "ok"}]`, form));
    if (refusal) mark.lastChild.textContent = refusal;
    find("state").replaceChildren(mark);
    find("done").textContent = "";
    find("cancel").remove();
    bar.remove();
    if (!url) return;
    const link = document.createElement("a");
    link.href = url;
    link.textContent = file.name;
    find("name").replaceChildren(link);
  }

  find("name").textContent = bar.ariaLabel = file.name;
  find("cancel").ariaLabel += ` ${file.name}`;
  $("[data-upload-list]", form).append(row);
  if (file.size > (form.dataset.maxBytes || Infinity)) return finish(form.dataset.tooLarge.replace("{size}", mega(file.size)));
  const body = new FormData(form);
  body.set("file", file, file.name);
  request.upload.onprogress = (event) => {
    bar.value = (100 * event.loaded) / event.total;
    find("done").textContent = `${mega(Math.min(event.loaded, file.size))} / ${mega(file.size)}`;
  };
  request.onload = () => {
    const answer = request.response || {};
    const refused = request.status >= 400 && (answer.message || saidFor(request.status));
    finish(refused, answer.url);
    if (!refused) htmx.trigger(form, "uploaded", answer);
  };
  request.onerror = () => finish(form.dataset.lost);
  request.onabort = () => row.remove();
  find("cancel").onclick = () => request.abort();
  request.open("POST", form.action);
  request.responseType = "json";
  request.setRequestHeader("Accept", "application/json");
  request.send(body);
}

const sendAll = (form, files) => [...files].forEach((file) => send(form, file));

on("change", ({ target: picker }) => {
  if (picker.type !== "file") return;
  const form = picker.closest("[data-upload]");
  if (!form) return void (picker.nextElementSibling.value = [...picker.files].map((file) => file.name).join(", "));
  sendAll(form, picker.files);
  picker.value = "";
});

for (const kind of ["dragover", "dragleave", "drop"]) on(kind, (event) => {
  const area = event.target.closest?.(".drop");
  if (!area) return;
  event.preventDefault();
  area.classList.toggle("over", kind === "dragover");
  if (kind === "drop") sendAll(area.closest("[data-upload]"), event.dataTransfer.files);
});

on("paste", (event) => {
  const form = $("#main [data-upload]");
  const files = event.clipboardData?.files || [];
  if (form && files.length) sendAll(form, files);
});

/* A chain: dragged by the grip; the server draws it. */

async function makeSortable(list) {
  if (!await import(list.dataset.sortable).catch(() => 0)) return;
  if (!Sortable.get(list)) Sortable.create(list, {
    handle: ".grip",
    draggable: "[data-item]",
    animation: matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 120,
    onEnd: () => htmx.trigger(list, "reorder"),
  });
}

/* The matrix: arrows go to the nearest control. */

const STOPS = ".cell, th a, th button, td button";
const stops = (row) => $$(STOPS, row).filter((stop) => stop.offsetParent);
const middle = (element) => {
  const { left, width } = element.getBoundingClientRect();
  return left + width / 2;
};

function nearest(row, to) {
  const away = (stop) => Math.abs(middle(stop) - middle(to));
  return row && stops(row).sort((one, other) => away(one) - away(other))[0];
}

function target(grid, current, key) {
  const row = current.closest("tr");
  const beside = stops(row);
  const place = beside.indexOf(current);
  const rows = $$("tr", grid).filter((one) => stops(one).length);
  const nextRow = (step) => nearest(rows[rows.indexOf(row) + step], current);
  return {
    ArrowLeft: beside[place - 1],
    ArrowRight: beside[place + 1],
    Home: beside[0],
    End: beside.at(-1),
    ArrowUp: nextRow(-1),
    ArrowDown: nextRow(1),
  }[key];
}

function rove(grid, current) {
  for (const stop of $$(STOPS, grid)) stop.tabIndex = stop === current ? 0 : -1;
}

on("keydown", (event) => {
  const grid = event.target.closest?.("[data-grid]");
  if (!grid || event.altKey) return;
  if (event.ctrlKey || event.metaKey) return void (event.key === "z" && $$("#toasts form").pop()?.requestSubmit());
  const next = target(grid, event.target, event.key);
  if (!next) return;
  event.preventDefault();
  rove(grid, next);
  next.focus();
});

on("focusin", (event) => {
  const grid = event.target.closest?.("[data-grid]");
  if (grid && event.target.tabIndex === -1) rove(grid, event.target);
});

htmx.onLoad(() => {
  $$("[data-sortable]").forEach(makeSortable);
  for (const grid of $$("[data-grid]")) rove(grid, $(":focus", grid) || $("[tabindex='0']", grid) || $(".cell", grid));
});
