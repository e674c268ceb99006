// What a page does by itself: the connection, what is ticked, questions, words in the corner.
// Everything else is drawn by the server.

const SILENT = 17_000; // milliseconds: a heartbeat and a little
const ASK = 5_000; // milliseconds between two questions while the stream is silent
const SHOWN = 8_000; // milliseconds a good word stays
const AGAIN = 5_000; // milliseconds until a stream that never began is asked for again

// — the connection —

const signal = document.getElementById("signal");
let heard = Date.now();

function say(state) {
  if (!signal || signal.dataset.is === state) return;
  signal.dataset.is = state;
  signal.textContent = signal.dataset[state];
  document.documentElement.dataset.signal = state;
}

function hear() {
  heard = Date.now();
  say("on");
}

document.addEventListener("htmx:sse:after:connection", hear);
document.addEventListener("htmx:sse:before:message", hear);
document.addEventListener("htmx:sse:before:connection", ({ detail }) => {
  if (detail.connection.attempt > 0 && !document.hidden) say("off");
});
document.addEventListener("htmx:sse:error", ({ detail }) => {
  say(detail.status === 401 ? "out" : "off");
  if (detail.status === 401) location.reload(); // which leads to the door, and back here
});
document.addEventListener("htmx:sse:close", () => say("off"));

// The stream comes back by itself once it has been there; until then we ask for it.
const live = document.getElementById("live");
function begin() {
  if (!live._htmx?.sse) htmx.ajax("GET", live.getAttribute("hx-sse:connect"), { source: live });
}
for (const trouble of ["htmx:error", "htmx:response:error"]) {
  live?.addEventListener(trouble, ({ detail }) => {
    if (detail.ctx?.response?.status === 401) location.reload();
    say("off");
    setTimeout(begin, AGAIN);
  });
}

// An office's proxy may keep the stream for itself: then the page asks how it should look.
let answered = 0;
setInterval(() => {
  if (!live || document.hidden || Date.now() - heard < SILENT) return;
  // Whoever gets no answer at all, not even a refusal, must not go on saying that all is well.
  if (Date.now() - Math.max(heard, answered) > SILENT + 2 * ASK) say("off");
  const how = { source: "#content", target: "#live", swap: "beforeend", headers: { "Retoma-Once": "1" } };
  htmx.ajax("GET", live.getAttribute("hx-sse:connect"), how);
}, ASK);
document.addEventListener("htmx:after:request", ({ detail }) => {
  if (!detail.ctx.request.headers["Retoma-Once"] || Date.now() - heard < SILENT) return;
  const well = detail.ctx.response?.status === 200;
  if (well) answered = Date.now();
  say(well ? "asking" : "off");
});
document.addEventListener("htmx:error", () => {
  if (Date.now() - heard > SILENT) say("off");
});

// — silence of what is looked at —

let moved = Date.now();
document.addEventListener("moved", () => {
  moved = Date.now();
});
setInterval(() => {
  const warning = document.querySelector("[data-silence]");
  if (!warning) return;
  const quiet = Date.now() - moved > Number(warning.dataset.silence) * 1_000;
  warning.hidden = !(quiet && document.querySelector("[data-moving]"));
}, 1_000);

// — what is ticked —

const order = document.getElementById("order");
const boxes = () => [...document.querySelectorAll('.tick input[form="order"]')];
let last = null;

function count() {
  if (!order) return;
  const ticked = boxes().filter((box) => box.checked).length;
  const all = document.querySelector("[data-tick-all]");
  const text = order.querySelector("[data-ticked]");
  order.hidden = ticked === 0;
  text.textContent = ticked === 1 ? text.dataset.one : text.dataset.many.replace("%", ticked);
  if (ticked === 0) order.elements.all && (order.elements.all.checked = false);
  if (all) {
    all.checked = ticked > 0 && ticked === boxes().length;
    all.indeterminate = ticked > 0 && !all.checked;
  }
}

function untick() {
  for (const box of boxes()) box.checked = false;
  count();
}

document.addEventListener("change", async ({ target }) => {
  // A file is read here and stands where it would have been pasted; it is not sent as a file.
  const into = target.dataset?.into && target.form?.querySelector(`textarea[name="${target.dataset.into}"]`);
  if (into && target.files?.length) {
    const { place } = await import("./files.js");
    await place(into, target.files[0], "workbooks" in target.dataset);
    target.value = ""; // chosen again once it was corrected, it is read again
  }
  if (target.matches("[data-tick-all]")) {
    for (const box of boxes()) box.checked = target.checked;
  }
  count();
});
document.addEventListener("click", (event) => {
  const box = event.target.closest?.('.tick input[form="order"]');
  if (box) {
    const all = boxes();
    if (event.shiftKey && last?.isConnected) {
      const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((a, b) => a - b);
      for (const each of all.slice(from, to + 1)) each.checked = box.checked;
    }
    last = box;
    count();
  }
  if (event.target.closest?.("[data-untick]")) untick();
  event.target.closest?.("[data-close]")?.closest("[data-notice]")?.remove();
});
document.addEventListener("htmx:after:swap", count);
document.addEventListener("htmx:sse:after:message", count);
document.addEventListener("htmx:after:request", ({ target, detail }) => {
  if (target === order && detail.ctx.response.status < 400) untick();
});

// — questions —

const dialog = document.getElementById("confirm");

async function tellHowMany(form, submitter, text) {
  const before = text.textContent;
  const body = new URLSearchParams(new FormData(form, submitter));
  const answer = await fetch(form.action, { method: "POST", body, headers: { "Retoma-Count": "1" } });
  if (answer.ok && text.textContent === before) text.textContent = [before, await answer.text()].join(" ");
}

let asked = null; // whose form may go

document.addEventListener(
  "submit",
  (event) => {
    const question = event.submitter?.dataset.ask;
    if (!question || asked === event.submitter) {
      asked = null;
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
    const all = event.target.elements.all;
    const text = dialog.querySelector("#confirm-text");
    text.textContent = [question, all?.checked ? all.dataset.warns : ""].join(" ").trim();
    if (all?.checked) tellHowMany(event.target, event.submitter, text);
    dialog.showModal();
    dialog.onclick = ({ target }) => {
      if (target !== dialog && target.tagName !== "BUTTON") return;
      dialog.close();
      if (target.value !== "yes") return;
      asked = event.submitter;
      event.target.requestSubmit(event.submitter);
    };
  },
  true,
);

document.addEventListener("click", ({ target }) => {
  const opens = target.closest?.("[data-open]");
  if (opens) {
    const opened = document.getElementById(opens.dataset.open);
    const fields = opened.querySelector("form").elements;
    // What it is about: a button in a row knows, the dialog stands for all rows.
    for (const [name, value] of Object.entries(JSON.parse(opens.dataset.fill ?? "{}"))) {
      if (fields[name]) fields[name].value = value;
      for (const each of opened.querySelectorAll(`[data-fills="${name}"]`)) each.textContent = value;
    }
    opened.showModal();
  }
  if (target.closest?.("[data-dismiss]")) target.closest("dialog").close();
});
document.addEventListener("htmx:after:request", ({ target, detail }) => {
  target.closest?.("dialog")?.close();
  if (detail.ctx.response?.status < 400) target.closest?.("dialog form, form.sent")?.reset();
});

// — pressed twice —

// A form has one key until it was answered, so that what is pressed twice is done once.
const keys = new WeakMap();

function keyOf(form) {
  const random = () => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
  if (!keys.has(form)) keys.set(form, random());
  return keys.get(form);
}

document.addEventListener("htmx:config:request", ({ target, detail }) => {
  const form = target.closest?.("form");
  if (form && detail.ctx.request.method === "POST") detail.ctx.request.headers["Idempotency-Key"] = keyOf(form);
});
document.addEventListener("htmx:after:request", ({ target, detail }) => {
  if (detail.ctx.response) keys.delete(target.closest?.("form"));
});

// — words in the corner —

const notices = document.getElementById("notices");
new MutationObserver((changes) => {
  for (const { addedNodes } of changes) {
    for (const node of addedNodes) {
      if (node.matches?.(".notice:not(.bad, .keep)")) setTimeout(() => node.remove(), SHOWN);
    }
  }
}).observe(notices, { childList: true });

[...document.querySelectorAll(".nav [aria-current]")].at(-1)?.scrollIntoView({ block: "nearest", inline: "center" });
