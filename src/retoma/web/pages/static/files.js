// What forms that take files have in common: what was dropped on them, how large it is, words with their values.

export function sized(bytes) {
  const units = ["B", "kB", "MB", "GB"];
  const at = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), 3);
  const number = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: 1 });
  return `${number.format(bytes / 1024 ** at)} ${units[at]}`;
}

// With a function: what a file is called may look like a pattern.
export function filled(text, values) {
  return text.replace(/%(\w+)/g, (_, name) => values[name]);
}

// Whatever encoding a spreadsheet wrote it in.
export async function textOf(file) {
  return decoded(await file.arrayBuffer());
}

function decoded(bytes) {
  const mark = [...new Uint8Array(bytes.slice(0, 2))].join();
  if (mark === "255,254") return new TextDecoder("utf-16le").decode(bytes);
  if (mark === "254,255") return new TextDecoder("utf-16be").decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

function dataUrlOf(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

// An XLSX file begins like a ZIP archive, an XLS file like an OLE one.
const WORKBOOKS = ["80,75,3,4", "208,207,17,224"];

// A text stands where it would have been pasted. A workbook is no text: its bytes are sent beside the area, which
// shows its name.
export async function place(area, file, takesWorkbooks) {
  const bytes = await file.arrayBuffer();
  const start = [...new Uint8Array(bytes.slice(0, 4))].join();
  const isWorkbook = takesWorkbooks && WORKBOOKS.includes(start);
  area.form.querySelector("input[data-workbook]")?.remove();
  area.disabled = isWorkbook;
  area.value = isWorkbook ? file.name : decoded(bytes);
  if (!isWorkbook) return;
  const field = document.createElement("input");
  Object.assign(field, { type: "hidden", name: area.name, value: await dataUrlOf(file) });
  field.dataset.workbook = "";
  area.form.append(field);
}

function read(entry) {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

// A folder tells of a hundred at a time.
async function* below(entry) {
  if (entry.isFile) {
    yield [entry.fullPath.slice(1), await read(entry)];
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return;
    for (const each of some) yield* below(each);
  }
}

async function dropped(data) {
  // All entries first: what was dropped is gone after the first wait.
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...data.files].map((file) => [file.name, file]);
  const found = [];
  for (const entry of entries) {
    for await (const each of below(entry)) found.push(each);
  }
  return found;
}

// `add` is given every file that is dropped, and every one below a folder, each with its name.
export function takeDrops(zone, add) {
  for (const over of ["dragenter", "dragover"]) {
    zone.addEventListener(over, (event) => {
      event.preventDefault();
      zone.classList.add("over");
    });
  }
  for (const away of ["dragleave", "drop"]) zone.addEventListener(away, () => zone.classList.remove("over"));
  zone.addEventListener("drop", async (event) => {
    event.preventDefault();
    add(await dropped(event.dataTransfer));
  });
}

// The same for what is chosen; also before this was there to hear of it.
export function takeChosen(field, add) {
  function take() {
    if (!field.files.length) return;
    add([...field.files].map((file) => [file.webkitRelativePath || file.name, file]));
    field.value = "";
  }
  field.addEventListener("change", take);
  take();
}
