// A table whose rows keep their elements from one update to the next, so that focus and selection survive.
import { el, setShare, setText } from "/page/dom.js";

// columns: [{ label, cell(td, row) or text(row), num, main, wide, tight }]. A cell's function fills the td; text() is a plain text.
export function table(caption, columns, { key, look = () => "" }) {
  const head = el("tr", { role: "row" });
  for (const column of columns) {
    const name = column.hide ? el("span", { class: "sr" }, column.label) : column.label;
    head.append(el("th", { scope: "col", role: "columnheader", class: column.num ? "num" : undefined, title: column.title }, name));
  }
  const body = el("tbody", { role: "rowgroup" });
  const node = el("table", { class: "table", role: "table", "aria-label": caption }, el("thead", { role: "rowgroup" }, head), body);
  const rows = new Map();

  function make() {
    const cells = columns.map((column) => {
      const classes = ["num", "main", "wide", "tight"].filter((name) => column[name]).join(" ");
      return el("td", { role: "cell", class: classes || undefined, "data-label": column.hide ? undefined : column.label });
    });
    return { node: el("tr", { role: "row" }, ...cells), cells, state: {} };
  }

  function update(list) {
    const seen = new Set();
    list.forEach((row, index) => {
      const id = String(key(row));
      seen.add(id);
      let entry = rows.get(id);
      if (!entry) rows.set(id, entry = make());
      columns.forEach((column, place) => {
        const cell = entry.cells[place];
        if (column.text) setText(cell, column.text(row));
        else column.cell(cell, row, entry.state);
      });
      entry.node.className = look(row);
      if (body.children[index] !== entry.node) body.insertBefore(entry.node, body.children[index] ?? null);
    });
    for (const [id, entry] of rows) {
      if (seen.has(id)) continue;
      entry.node.remove();
      rows.delete(id);
    }
  }
  return { node, update };
}

// Shows only the first rows of a table until the reader asks for all of them.
export function limited(view, first, noun) {
  let all = false, latest = [];
  const more = el("button", { type: "button", onclick: () => { all = true; update(latest); } });
  const foot = el("p", { class: "foot", hidden: true }, more);
  function update(rows) {
    latest = rows;
    view.update(all ? rows : rows.slice(0, first));
    foot.hidden = all || rows.length <= first;
    setText(more, `Show all ${rows.length} ${noun}`);
  }
  return { foot, update };
}

// Fills a cell with lines: the first is its text, further ones are small. Elements are made again only if a text has changed.
export function lines(cell, texts) {
  const wanted = JSON.stringify(texts);
  if (cell.dataset.lines === wanted) return;
  cell.dataset.lines = wanted;
  const parts = texts.filter((line) => line).map((line, index) => {
    const { text, as = "span", class: look = index ? "second" : "" } = typeof line === "string" ? { text: line } : line;
    const part = el(as, look ? { class: look } : {}, text);
    if (line.href) part.setAttribute("href", line.href);
    if (line.title) part.setAttribute("title", line.title);
    return part;
  });
  cell.replaceChildren(...parts);
}

// A number with a bar below it that shows its share.
export function meter(cell, text, share, tone = "blue") {
  cell.classList.add("meter-cell");
  if (!cell.firstChild) cell.append(el("span"), el("span", { class: `meter tone-${tone}`, "aria-hidden": "true" }, el("i")));
  setText(cell.firstChild, text);
  setShare(cell.lastChild.firstChild, share);
}

// A number that is grey if it is zero and stands out if it is a problem.
export function emphasis(cell, text, isZero, isBad) {
  setText(cell, text);
  cell.classList.toggle("zero", isZero);
  cell.classList.toggle("strong-bad", !isZero && Boolean(isBad));
}
