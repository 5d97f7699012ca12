// The tab Keys: the hottest rows, and the transactions that block some of them.
import { chip, el, empty, setText } from "/page/dom.js";
import { count, duration, ms, rate, ratio } from "/page/format.js";
import { emphasis, limited, lines, meter, table } from "/page/table.js";

// Rows that the tab shows before the reader asks for all.
const FIRST = 25;

// The row, as in "id = 7". If values are hidden, a label stands for the row: "id = ? (3fa91c)".
function row(key) {
  if (key.columns.length === 0) return key.table ? "many rows" : "";
  const columns = key.columns.map((column, index) => `${column} = ${key.values ? key.values[index] : "?"}`).join(", ");
  return key.values || !key.label ? columns : `${columns} (${key.label})`;
}

const KINDS = { write: "writes", read: "reads", transaction: "transactions" };

function blockers(key) {
  return key.blockers.flatMap((blocker) => {
    const holder = blocker.pid === 0 ? "a prepared transaction" : `pid ${blocker.pid}`;
    const since = blocker.transaction_seconds === null ? "" : `, in its transaction for ${duration(blocker.transaction_seconds)}`;
    const lines = [{ text: `Blocked by ${holder}${blocker.state ? `, ${blocker.state}` : ""}${since}`, class: "second alarm" }];
    if (blocker.query) lines.push({ text: blocker.query, as: "code", class: "second clip" });
    const end = blocker.pid ? `select pg_terminate_backend(${blocker.pid})` : "rollback prepared, with the gid in pg_prepared_xacts";
    lines.push({ text: `To end it: ${end}`, class: "second" });
    return lines;
  });
}

function keyColumns(most) {
  return [
    {
      label: "Row", main: true,
      cell: (cell, key) => lines(cell, [
        { text: [key.table || "a table not known yet", row(key)].filter(Boolean).join(": "), as: "strong" },
        `${KINDS[key.kind] ?? key.kind} in ${key.database}`, ...blockers(key)]),
    },
    { label: "Units/s", num: true, cell: (cell, key) => meter(cell, rate(key.units_per_second), key.units_per_second / most()) },
    { label: "Units per commit", num: true, text: (key) => ratio(key.units_per_commit) },
    { label: "Waiting", num: true, cell: (cell, key) => emphasis(cell, count(key.waiting + key.parked), key.waiting + key.parked === 0, key.parked) },
    { label: "Median", num: true, text: (key) => ms(key.p50_milliseconds) },
    { label: "p99", num: true, text: (key) => ms(key.p99_milliseconds) },
    { label: "Commits saved", num: true, cell: (cell, key) => emphasis(cell, key.kind === "write" ? count(key.commits_saved) : "–", !key.commits_saved) },
  ];
}

function keyTable() {
  let most = 1;
  const view = table("Hottest keys", keyColumns(() => most), {
    key: (key) => [key.database, key.kind, key.table, key.columns, key.values, key.label].join("\u0001"),
    look: (key) => (key.blockers.length ? "bad" : ""),
  });
  return {
    node: view.node,
    update(keys) {
      most = Math.max(1, ...keys.map((key) => key.units_per_second));
      view.update(keys);
    },
  };
}

// A hint about hidden values.
const hidden = (about) => (about && !about.shows_values ? ["Values are hidden, and the text in parentheses stands for the row. Set ", el("code", {}, "http_show_values"), " to show values."] : []);

// A panel with the first keys, for the tab Now.
export function hotKeys(number) {
  const keys = keyTable();
  const none = empty("No hot keys", "A row appears here as soon as statements update it or read it by its key.");
  none.hidden = true; // until numbers have come
  const node = el("section", { class: "panel flush", "aria-label": "Hottest keys" },
    el("header", {}, el("h2", {}, "Hottest keys"), el("a", { href: "#keys" }, "All keys")), keys.node, none);
  return {
    node,
    update(state) {
      keys.update(state.keys.slice(0, number));
      keys.node.hidden = state.keys.length === 0;
      none.hidden = state.keys.length > 0;
    },
  };
}

export function mount(root) {
  const keys = keyTable();
  const about = el("p");
  const blocked = chip("", "bad");
  const limit = limited(keys, FIRST, "keys");
  const none = empty("No keys yet", "A row appears here as soon as statements update it or read it by its key. A row that no statement uses for a while leaves the list.");
  none.hidden = true; // until numbers have come
  const list = el("section", { class: "panel flush", "aria-label": "Keys" }, keys.node, limit.foot, none);
  root.append(el("div", { class: "head" }, el("h1", {}, "Which rows are hot, and which sessions block them"), blocked, about), list);
  return {
    update({ state, about: facts }) {
      if (!state) return;
      limit.update(state.keys);
      keys.node.hidden = state.keys.length === 0;
      none.hidden = state.keys.length > 0;
      const number = state.keys.filter((key) => key.blockers.length).length;
      blocked.hidden = number === 0;
      setText(blocked, `${number} blocked`);
      if (facts && !about.firstChild) about.append("Rates and latencies of the last 10 to 20 seconds. Blocked rows come first. ", ...hidden(facts));
    },
  };
}
