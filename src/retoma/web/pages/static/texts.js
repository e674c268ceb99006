// Files that are dropped or chosen are read here, as text, and sent some at a time; a folder is the files below it.

import { filled, sized, takeChosen, takeDrops } from "./files.js";

const A_REQUEST = 4 * 1024 * 1024; // bytes of texts, and one more where that alone is longer
const MOST = 200; // documents in a request
const LARGEST_FILE = 50 * 1024 * 1024; // bytes of a file that the server reads
const READ_THERE = /\.(pdf|docx|html?)$/i; // what is more than plain text is read by the server
const TRIES = 3;
const PAUSE = 1_000; // milliseconds before the second
const form = document.getElementById("texts");
const chosen = new Map(); // files by their names: the last of a name counts

const part = (selector) => form.querySelector(selector);

function tell(words) {
  document.getElementById("texts-told").textContent = words;
}

function refuse(name, why) {
  const list = document.getElementById("texts-refused");
  const line = document.createElement("li");
  line.textContent = [name, why].join(": ");
  list.append(line);
  list.parentElement.hidden = false;
}

function add(files) {
  const largest = Number(form.dataset.largest) * 1024 * 1024;
  for (const [name, file] of files) {
    const most = READ_THERE.test(name) ? LARGEST_FILE : largest;
    if (file.size > most) refuse(name, filled(form.dataset.large, { size: sized(most) }));
    else chosen.set(name, file);
  }
  const size = [...chosen.values()].reduce((sum, file) => sum + file.size, 0);
  tell(chosen.size ? filled(form.dataset.chosen, { all: chosen.size, size: sized(size) }) : "");
  part("button.primary").disabled = chosen.size === 0;
}

// — where they go —

// Null: a picture, an archive, or words in another encoding. Half-read words would never be found.
async function text(file) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    return null;
  }
}

async function* groups(sent) {
  let group = [];
  let size = 0;
  for (const [nome, file] of chosen) {
    if (READ_THERE.test(nome)) continue;
    const texto = await text(file);
    if (texto === null) {
      refuse(nome, form.dataset.unread);
      sent.done += 1;
      sent.refused += 1;
      continue;
    }
    if (group.length === MOST || (group.length && size + file.size > A_REQUEST)) {
      yield group;
      group = [];
      size = 0;
    }
    group.push({ nome, texto });
    size += file.size;
  }
  if (group.length) yield group;
}

async function post(body, address = form.action, type = "application/json") {
  const headers = { "Content-Type": type, "X-CSRF-Token": form.elements.csrf.value };
  for (let tries = 1; ; tries += 1) {
    try {
      const answer = await fetch(address, { method: "POST", headers, body });
      if (answer.status < 500 && answer.status !== 429) return { ok: answer.ok, said: await answer.json() };
    } catch {
      // tried again below: what arrived already is known by its name
    }
    if (tries === TRIES) return { ok: false, said: { detail: form.dataset.broken } };
    await new Promise((resolve) => setTimeout(resolve, PAUSE * tries));
  }
}

async function send() {
  const { colecao, tamanho, sobreposicao } = form.elements;
  const about = { colecao: colecao.value, tamanho: Number(tamanho.value), sobreposicao: Number(sobreposicao.value) };
  const all = chosen.size;
  const sent = { done: 0, new: 0, already: 0, refused: 0, bytes: 0 };
  const bar = part("progress");
  part("[data-shown]").hidden = false;
  bar.max = all;
  const take = ({ ok, said }, documents, bytes) => {
    if (!ok) {
      refuse(colecao.value, [said.detail, ...(said.errors ?? []).map((each) => each.message)].join(" "));
      return false;
    }
    for (const each of said.recusados) refuse(each.nome, each.mensagem);
    sent.done += documents;
    sent.new += said.novos;
    sent.already += said.ja;
    sent.refused += said.recusados.length;
    sent.bytes += bytes;
    sent.address = said.address;
    bar.value = sent.done;
    tell(filled(form.dataset.progress, { ...sent, all, size: sized(sent.bytes) }));
    return true;
  };
  for await (const documentos of groups(sent)) {
    const bytes = documentos.reduce((sum, each) => sum + each.texto.length, 0);
    if (!take(await post(JSON.stringify({ ...about, documentos })), documentos.length, bytes)) return null;
  }
  for (const [nome, file] of chosen) {
    if (!READ_THERE.test(nome)) continue;
    const address = `${form.getAttribute("action")}/arquivo?${new URLSearchParams({ ...about, nome })}`;
    if (!take(await post(file, address, "application/octet-stream"), 1, file.size)) return null;
  }
  return sent;
}

async function begin() {
  const button = part("button.primary");
  const list = document.getElementById("texts-refused");
  list.replaceChildren();
  list.parentElement.hidden = true;
  button.disabled = true;
  const sent = await send();
  if (sent && !sent.refused) return location.assign(sent.address);
  if (sent) {
    // Somebody should read why some were not taken, before he looks at the others.
    tell(filled(form.dataset.ready, sent));
    const seen = part("[data-seen]");
    if (sent.address) seen.href = sent.address;
    seen.hidden = !sent.address;
  }
  button.disabled = false;
}

if (form) {
  takeDrops(part("[data-drop]"), add);
  for (const field of form.querySelectorAll("[data-choose]")) takeChosen(field, add);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    begin();
  });
}
