/* Drafts of forms. */

const { $, $$, on, words, clone } = window.frameParts;
const user = $("#toasts")?.dataset.user;
const store = localStorage;
const NEVER = "button, [type=password], [data-secret], [name=csrfmiddlewaretoken], [data-aside] *";
const keyOf = (form) => `draft ${user} ${location.pathname} ${form.dataset.draft}`;
const forms = () => $$("[data-draft]");
const fields = (form) => [...form.elements].filter((one) => one.name && !one.matches(NEVER));
const isBox = (one) => /checkbox|radio/.test(one.type);
const read = (form) => fields(form).filter((one) => !isBox(one) || one.checked).map((one) => [one.name, one.value]);
const clean = new WeakMap();
const isDirty = (form) => String(read(form)) !== clean.get(form);
const drop = (form) => delete store[keyOf(form)];
let leaving = !user;

function keep(form) {
  if (isDirty(form)) store[keyOf(form)] = JSON.stringify({ at: Date.now(), pairs: read(form) });
  else if (!$(".draft-bar", form)) drop(form);
}

function restore(form, pairs) {
  const values = {};
  for (const [name, value] of pairs) (values[name] ||= []).push(value);
  const drawn = "redraw" in form.dataset;
  for (const one of fields(form)) {
    const given = values[one.name] || [];
    if (isBox(one)) one.checked = given.includes(one.value);
    else if (!drawn) one.value = given.shift() ?? one.value;
  }
  if (drawn) return htmx.ajax("POST", "", { target: form.parentElement, swap: "outerHTML", values });
  keep(form);
  htmx.trigger(form[0], "change");
}

function offer(form, { at, pairs }) {
  const bar = clone($("#draft-bar"));
  $("time", bar).textContent = new Date(at).toLocaleString(document.documentElement.lang,
    { dateStyle: "short", timeStyle: "short" });
  $("[data-newer]", bar).hidden = new Map(pairs).get("version") === form.elements.version?.value;
  bar.onclick = ({ target: { value } }) => {
    if (!value) return;
    bar.remove();
    if (value === "back") restore(form, pairs);
    else drop(form);
    $("#main").focus();
  };
  form.prepend(bar);
}

function begin(form) {
  if (clean.has(form)) return keep(form);
  const draft = store[keyOf(form)];
  clean.set(form, "unsaved" in form.dataset ? "" : String(read(form)));
  if (draft && clean.get(form)) offer(form, JSON.parse(draft));
  else keep(form);
}

/* What was sent is saved once a toast says so. */
const sent = sessionStorage.sent;
delete sessionStorage.sent;
if (sent && $("#toasts > .toast:not([data-level=error])")) delete store[sent];
if (user) htmx.onLoad(() => forms().forEach(begin));

const ON = {
  input: ({ target }) => target.form?.dataset.draft && keep(target.form),
  submit(event) {
    if (event.defaultPrevented || !event.target.dataset.draft) return;
    sessionStorage.sent = keyOf(event.target);
    leaving = true;
  },
  click({ target }) {
    if (!target.closest("[data-discard]")) return;
    for (const form of forms()) {
      drop(form);
      clean.set(form, String(read(form)));
    }
  },
  "htmx:afterRequest"({ detail: { successful, requestConfig: { elt } } }) {
    if (successful && elt.dataset.draft && !elt.isConnected) drop(elt);
  },
  "htmx:beforeRequest"(event) {
    if (event.detail.boosted && isLeft() && !confirm(words().leave)) event.preventDefault();
  },
};
const isLeft = () => !leaving && forms().some(isDirty);

for (const kind in ON) on(kind, ON[kind]);
addEventListener("beforeunload", (event) => isLeft() && event.preventDefault());
