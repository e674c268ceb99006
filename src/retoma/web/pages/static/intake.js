// Files that are dropped or chosen: sent one by one as they come, told how far, then asked for together.
// And lines of a form, one more at a time.

import { filled, sized, takeChosen, takeDrops, textOf } from "./files.js";

const AT_ONCE = 3; // files on their way
const TRIES = 3; // of a file whose way there is broken, or closed for a moment
const PAUSE = 1_000; // milliseconds before the second
const OFTEN = 100; // milliseconds between two looks at how far it is
const form = document.getElementById("intake");

// — lines —

document.addEventListener("click", ({ target }) => {
  const more = target.closest?.("[data-more]");
  if (!more) return;
  const lines = document.getElementById(more.dataset.more);
  const line = lines.lastElementChild.cloneNode(true);
  for (const field of line.querySelectorAll("input, textarea")) field.value = "";
  lines.append(line);
  line.querySelector("input").focus();
});

// — files —

const LISTED = 500; // files that are named; all of them are counted
const come = []; // documents, as the server called them, each with its turn
const removed = new Set(); // codes of those that somebody does not want after all
const waiting = [];
const failed = [];
const sent = { done: 0, all: 0, bytes: 0, size: 0 };
const under = new Map(); // bytes of what is on its way
let manifest = null;
let active = 0;
let turn = 0; // in which they were handed in: not always that in which they arrive
let key = crypto.randomUUID?.() ?? String(Math.random()).slice(2);

const part = (selector) => form.querySelector(selector);
const token = () => form.elements.csrf.value;

function told() {
  const bytes = sent.bytes + [...under.values()].reduce((sum, n) => sum + n, 0);
  const bar = part("progress");
  part("[data-shown]").hidden = sent.all === 0;
  bar.max = Math.max(sent.size + sent.all, 1); // an empty file is something too
  bar.value = bytes + sent.done;
  const words = sent.all ? [`${filled(form.dataset.progress, { ...sent, size: sized(bytes) })}.`] : [];
  const over = active === 0 && waiting.length === 0;
  const wanted = come.length - removed.size;
  if (over && come.length) words.push(filled(form.dataset.ready, { all: wanted }));
  if (manifest) words.push(filled(form.dataset.manifested, { name: manifest.name }));
  document.getElementById("intake-told").textContent = words.join(" ");
  part("[data-again]").hidden = !(over && failed.length);
  part("button.primary").disabled = !(over && wanted);
  if (over) list();
}

const ordered = () => [...come].sort(([one], [other]) => one - other).map(([, each]) => each);

function list() {
  const files = document.getElementById("intake-files");
  const lines = ordered().slice(0, LISTED).filter(({ codigo }) => !removed.has(codigo));
  files.replaceChildren(...lines.map((each) => {
    const line = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "small";
    button.textContent = form.dataset.remove;
    button.setAttribute("aria-label", `${form.dataset.remove}: ${each.arquivo}`);
    button.addEventListener("click", () => {
      removed.add(each.codigo);
      told();
    });
    line.append(`${each.arquivo} `, button);
    return line;
  }));
  part("[data-files-shown]").hidden = lines.length === 0;
}

let soon = null;
function tellSoon() {
  soon ??= setTimeout(() => {
    soon = null;
    told();
  }, OFTEN);
}

function refuse(name, why) {
  const list = document.getElementById("intake-refused");
  const line = document.createElement("li");
  line.textContent = [name, why].join(": ");
  line.dataset.file = name;
  list.append(line);
  list.parentElement.hidden = false;
}

function take({ documentos, recusados }, at) {
  come.push(...documentos.map((each) => [at, each]));
  for (const each of recusados) refuse(each.arquivo, each.mensagem);
}

function why(problem) {
  const flaws = (problem.errors ?? []).map((each) => `${each.path} ${each.message}`);
  return [problem.detail, ...flaws].join(" ");
}

// By XMLHttpRequest: it alone tells how much of a file has gone.
function send(name, file) {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open("POST", `${form.dataset.files}?nome=${encodeURIComponent(name)}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.setRequestHeader("X-CSRF-Token", token());
    request.responseType = "json";
    request.upload.onprogress = ({ loaded }) => {
      under.set(name, loaded);
      tellSoon();
    };
    request.onloadend = () => resolve({ status: request.status, answer: request.response });
    request.send(file);
  });
}

async function sendAgain(name, file) {
  for (let tries = 1; ; tries += 1) {
    const said = await send(name, file);
    const broken = said.status === 0 || said.status === 429 || said.status >= 500;
    if (!broken || tries === TRIES) return said;
    await new Promise((resolve) => setTimeout(resolve, PAUSE * tries));
  }
}

async function work() {
  active += 1;
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    const [name, file, at] = next;
    const { status, answer } = await sendAgain(name, file);
    under.delete(name);
    if (status === 200) {
      take(answer, at);
      sent.bytes += file.size;
      sent.done += 1;
    } else {
      failed.push(next);
      refuse(name, answer?.detail ? why(answer) : form.dataset.failed);
    }
    tellSoon();
  }
  active -= 1;
  told();
}

async function add(files) {
  for (const [name, file, at] of files) {
    if (file.name.toLowerCase() === form.dataset.manifest) {
      manifest = { name: file.name, text: await textOf(file) };
      continue;
    }
    turn += 1;
    waiting.push([name, file, at ?? turn]);
    sent.all += 1;
    sent.size += file.size;
  }
  told();
  while (active < AT_ONCE && waiting.length) work();
}

async function takeFolder() {
  const field = part("[data-folder]");
  if (!field.value.trim()) return field.focus();
  const headers = { "Content-Type": "application/json", "X-CSRF-Token": token() };
  const body = JSON.stringify({ pasta: field.value.trim() });
  active += 1;
  told();
  try {
    const answer = await fetch(form.dataset.folders, { method: "POST", headers, body });
    const said = await answer.json();
    turn += 1;
    if (answer.ok) take(said, turn);
    else refuse(field.value, why(said));
  } catch {
    refuse(field.value, form.dataset.broken);
  }
  active -= 1;
  told();
}

async function begin() {
  const result = document.getElementById("intake-result");
  const button = part("button.primary");
  const { projeto, nome, orcamento } = form.elements;
  const wanted = { projeto_id: Number(projeto.value), documentos: ordered(), sem: [...removed] };
  if (nome.value.trim()) wanted.nome = nome.value.trim();
  if (orcamento.value.trim()) wanted.orcamento = orcamento.value.trim();
  if (manifest) wanted.manifesto = manifest.text;
  const headers = { "Content-Type": "application/json", "X-CSRF-Token": token(), "Idempotency-Key": key };
  const say = (words) => {
    const line = document.createElement("p");
    line.className = "failing";
    line.textContent = words;
    result.replaceChildren(line);
    button.disabled = false;
  };
  button.disabled = true;
  try {
    const answer = await fetch(form.action, { method: "POST", headers, body: JSON.stringify(wanted) });
    const said = await answer.json();
    if (answer.ok) return location.assign(said.address);
    key = crypto.randomUUID?.() ?? `${key}x`; // what is asked next may say something else
    say(why(said));
  } catch {
    say(form.dataset.broken); // with the same key: asked again it is no second execution
  }
}

if (form) {
  takeDrops(part("[data-drop]"), add);
  takeChosen(part("[data-choose]"), add);
  part("[data-take-folder]")?.addEventListener("click", takeFolder);
  part("[data-folder]")?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    takeFolder();
  });
  part("[data-again]").addEventListener("click", () => {
    const again = failed.splice(0);
    for (const line of [...document.querySelectorAll("#intake-refused [data-file]")]) {
      if (again.some(([name]) => name === line.dataset.file)) line.remove();
    }
    const list = document.getElementById("intake-refused");
    list.parentElement.hidden = !list.childElementCount;
    sent.all -= again.length;
    sent.size -= again.reduce((sum, [, file]) => sum + file.size, 0);
    add(again);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    begin();
  });
  told();
}
