"use strict";

const sheet = JSON.parse(document.getElementById("data").textContent);
const items = sheet.items;
const UNSURE = sheet.choices.length; // its place behind the labels, as in sheet.fields
const SHOWN_COLUMNS = 8; // of one row; the others are folded away
const TABLE_COLUMNS = 6;

const byId = (name) => document.getElementById(name);

function make(tag, text, attributes = {}) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function tell(text) {
  byId("message").textContent = text;
  byId("message").hidden = !text;
}

// ---- Answers: a place in sheet.fields for each item, or null. The browser keeps each under a key of its own, so that two
// tabs of this page never write over each other's answers.

const keyOf = (i) => `${sheet.key}-${items[i].title}`;
const placeOf = new Map(items.map((_, i) => [keyOf(i), i]));

function parseAnswer(text) {
  const value = text === null || text === "" ? NaN : Number(text);
  return Number.isInteger(value) && value >= 0 && value <= UNSURE ? value : null;
}

function loadAnswers() {
  try {
    const [kept, own] = [localStorage, sessionStorage].map((store) =>
      items.map((_, i) => parseAnswer(store.getItem(keyOf(i)))),
    );
    // Chromium now and then gives a page that is loaded again an empty storage, though nothing is lost.
    return kept.some((one) => one !== null) ? kept : own;
  } catch (error) {
    tell("This browser does not keep answers (its storage is closed to this page): save the file before you close it.");
    return null;
  }
}

function keepAnswer(i, here = false) {
  try {
    for (const store of here ? [sessionStorage] : [localStorage, sessionStorage]) {
      if (answers[i] === null) store.removeItem(keyOf(i));
      else store.setItem(keyOf(i), answers[i]);
    }
  } catch (error) {
    tell("This browser does not keep answers (its storage is closed or full): save the file before you close the page.");
  }
}

// Another tab answered: take that over. Without a key, its whole storage was cleared.
function onStorage(event) {
  if (event.key !== null && !placeOf.has(event.key)) return;
  if (event.key === null) answers.fill(null);
  else answers[placeOf.get(event.key)] = parseAnswer(event.newValue);
  answers.forEach((_, i) => keepAnswer(i, true));
  draw();
}

const answers = loadAnswers() || items.map(() => null);
let place = Math.max(answers.indexOf(null), 0);
let asTable = false;
let revealed = false; // suggestions are shown before the answer too
let choosing = false; // W was pressed, and a label follows

function answer(value, at = place) {
  answers[at] = value;
  choosing = false;
  keepAnswer(at);
  if (!asTable && value !== null) {
    const open = answers.indexOf(null, at + 1);
    place = open >= 0 ? open : answers.includes(null) ? answers.indexOf(null) : at;
  }
  draw();
}

// A suggestion that is seen first is followed too often.
const isShown = (i) => revealed || answers[i] !== null;
const others = (item) => sheet.choices.map((_, code) => code).filter((code) => code !== item.given);

// ---- The file: what stands before and after an answer comes ready from the program.

function fileText() {
  const lines = items.map((item, i) => item.before + (answers[i] === null ? "" : sheet.fields[answers[i]]) + item.after);
  return [sheet.header, ...lines, ""].join("\n");
}

function save() {
  const link = make("a", undefined, { download: sheet.file_name });
  link.href = URL.createObjectURL(new Blob([fileText()], { type: "text/csv;charset=utf-8" }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  const left = answers.filter((value) => value === null).length;
  tell(`Saved ${sheet.file_name}${left ? `; ${left} ${left === 1 ? "row has" : "rows have"} no answer yet` : ""}.`);
}

// ---- One row at a time

function drawOne() {
  const item = items[place];
  const card = make("div", undefined, { class: "card" });
  const head = make("div", undefined, { class: "head" });
  head.append(make("h2", item.title), make("p", [...item.details, `${place + 1} of ${items.length}`].join(" · ")));
  const labels = make("div", undefined, { class: "labels" });
  labels.append(labelBox("Label given", item.given));
  if (isShown(place)) labels.append(labelBox("Suggested", item.suggested));
  card.append(head, labels);
  if (isShown(place)) {
    const reasons = make("ul", undefined, { class: "reasons" });
    for (const reason of item.reasons) reasons.append(make("li", reason));
    card.append(make("h3", "Why it is here"), reasons);
  }
  card.append(make("h3", "The row, with what matters first"), valueList(item.values.slice(0, SHOWN_COLUMNS)));
  if (item.values.length > SHOWN_COLUMNS) {
    const more = make("details");
    more.append(make("summary", `${item.values.length - SHOWN_COLUMNS} more columns`), valueList(item.values.slice(SHOWN_COLUMNS)));
    card.append(more);
  }
  card.append(answerButtons(item), moveButtons());
  byId("one").replaceChildren(card);
}

function labelBox(title, code) {
  const box = make("div", undefined, { class: "label" });
  box.append(make("span", title), make("strong", sheet.choices[code]));
  return box;
}

function valueList(values) {
  const list = make("dl");
  for (const [column, value] of values) {
    const pair = make("div");
    pair.append(make("dt", column), make("dd", value === "" ? "–" : value));
    list.append(pair);
  }
  return list;
}

function answerButtons(item) {
  const box = make("div", undefined, { class: "answers", role: "group", "aria-label": "Is the label right?" });
  const button = (words, key, kind, value) => {
    const made = make("button", `${words} `, { type: "button", class: kind, "aria-pressed": answers[place] === value });
    made.append(make("kbd", key));
    made.addEventListener("click", () => answer(value));
    box.append(made);
  };
  button(`Right: ${sheet.choices[item.given]}`, "R", "right", item.given);
  const wrong = others(item);
  wrong.forEach((code, i) => {
    button(`Wrong: it is ${sheet.choices[code]}`, wrong.length === 1 ? "W" : i < 9 ? `${choosing ? "" : "W "}${i + 1}` : "", "wrong", code);
  });
  button("Unsure", "U", "unsure", UNSURE);
  return box;
}

function moveButtons() {
  const box = make("div", undefined, { class: "move" });
  const button = (words, key, step) => {
    const made = make("button", `${words} `, { type: "button" });
    made.disabled = place + step < 0 || place + step >= items.length;
    made.append(make("kbd", key));
    made.addEventListener("click", () => move(step));
    box.append(made);
  };
  button("Previous", "←", -1);
  button("Next", "→", 1);
  return box;
}

function move(step) {
  place = Math.min(Math.max(place + step, 0), items.length - 1);
  choosing = false;
  draw();
}

// ---- All rows as a table; made once, then only its answers change.

let body = null;

function drawTable() {
  if (body === null) makeTable();
  items.forEach((item, i) => {
    const row = body.rows[i];
    row.className = answers[i] === null ? "" : "answered";
    row.querySelector("select").value = answers[i] === null ? "" : String(answers[i]);
    row.cells[2].textContent = isShown(i) ? sheet.choices[item.suggested] : "";
    row.cells[2].className = !isShown(i) || item.suggested === item.given ? "" : "differs";
  });
}

function makeTable() {
  const columns = sheet.columns.slice(0, TABLE_COLUMNS);
  const table = make("table");
  const head = make("tr");
  for (const title of ["row", "label given", "suggested", "answer", "who", ...columns]) head.append(make("th", title, { scope: "col" }));
  table.createTHead().append(head);
  body = table.createTBody();
  items.forEach((item, i) => {
    const row = make("tr");
    const title = make("th", undefined, { scope: "row" });
    const open = make("button", item.title, { type: "button" });
    open.addEventListener("click", () => { place = i; asTable = false; draw(); });
    title.append(open);
    const select = make("select", undefined, { "aria-label": `Answer for ${item.title}` });
    select.append(make("option", "", { value: "" }), make("option", `right: ${sheet.choices[item.given]}`, { value: item.given }));
    for (const code of others(item)) select.append(make("option", `wrong: ${sheet.choices[code]}`, { value: code }));
    select.append(make("option", "unsure", { value: UNSURE }));
    select.addEventListener("change", () => answer(select.value === "" ? null : Number(select.value), i));
    const cell = make("td");
    cell.append(select);
    row.append(title, make("td", sheet.choices[item.given]), make("td"), cell, make("td", item.details.join(" · ")));
    const values = new Map(item.values);
    for (const column of columns) row.append(make("td", values.get(column) || "–"));
    body.append(row);
  });
  const scroll = make("div", undefined, { class: "scroll", tabindex: "0", role: "region", "aria-label": "All rows" });
  scroll.append(table);
  byId("table").append(scroll);
}

// ---- Everything that depends on the answers

function draw() {
  const known = answers.filter((value) => value !== null);
  const wrong = items.filter((item, i) => answers[i] !== null && answers[i] !== UNSURE && answers[i] !== item.given);
  const unsure = known.filter((value) => value === UNSURE).length;
  const done = known.length === items.length ? "All" : `${known.length} of`;
  byId("count").textContent = `${done} ${items.length} answered · ${wrong.length} wrong · ${unsure} unsure`;
  byId("progress").value = known.length;
  byId("one").hidden = asTable;
  byId("table").hidden = !asTable;
  byId("view").setAttribute("aria-pressed", asTable);
  byId("show").setAttribute("aria-pressed", revealed);
  if (asTable) drawTable();
  else drawOne();
}

function toggleView() { asTable = !asTable; draw(); }
function toggleRevealed() { revealed = !revealed; draw(); }

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select, input")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const item = items[place];
  const wrong = others(item);
  const anywhere = { t: toggleView, h: toggleRevealed, s: save };
  const inCard = {
    r: () => answer(item.given),
    u: () => answer(UNSURE),
    w: () => { if (wrong.length === 1) answer(wrong[0]); else { choosing = true; draw(); tell("Wrong: press the number of the right label."); } },
    ArrowLeft: () => move(-1),
    ArrowRight: () => move(1),
    Backspace: () => answer(null),
  };
  const action = anywhere[key] || (!asTable && inCard[key]);
  if (action) {
    event.preventDefault();
    if (key !== "s") tell("");
    action();
  } else if (!asTable && choosing && /^[1-9]$/.test(key) && Number(key) <= wrong.length) {
    event.preventDefault();
    tell("");
    answer(wrong[Number(key) - 1]);
  }
}

byId("view").addEventListener("click", toggleView);
byId("show").addEventListener("click", toggleRevealed);
byId("save").addEventListener("click", save);
document.addEventListener("keydown", onKey);
window.addEventListener("storage", onStorage);
draw();
document.documentElement.dataset.ready = "yes";
