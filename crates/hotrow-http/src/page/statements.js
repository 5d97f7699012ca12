// The tab Statements: which statements are packed, why others are not, and what to write instead.
import { chip, el, empty, setText } from "/page/dom.js";
import { count, percent } from "/page/format.js";
import { emphasis, lines, meter, table } from "/page/table.js";

const LOOKS = { packed: "good", merged: "good", passed: "warn", "answered here": "info", undecided: "" };
const FILTERS = { all: () => true, lost: (one) => one.passed > 0, packed: (one) => one.packed + one.merged > 0 };
const LABELS = { all: "All", lost: "With calls lost", packed: "Packed" };

// Why calls did not run in a batch, the most frequent reason first.
const CAUSES = [
  ["passed_not_packable", "cannot be packed"], ["passed_in_own_transaction", "inside a transaction of the client"],
  ["passed_session_pinned", "on a pinned session"], ["passed_switched_off", "with packing switched off"], ["passed_in_shadow_mode", "in shadow mode"],
  ["passed_fails_too_often", "after it failed or took too long in lanes"], ["passed_with_others", "sent with other statements that cannot be packed"],
  ["passed_undecided", "while the gateway asked the catalog about it"],
];

function causes(one) {
  const list = CAUSES.filter(([name]) => one[name] > 0).sort(([a], [b]) => one[b] - one[a]);
  // The reason above says it already.
  if (list.length === 1 && list[0][0] === "passed_not_packable") return "";
  return list.map(([name, text]) => `${count(one[name])} ${text}`).join("; ");
}

const COLUMNS = [
  {
    label: "Statement", main: true,
    cell: (cell, one) => lines(cell, [
      { text: one.statement, as: "code", class: "clip", title: one.statement },
      one.reason ? { text: `${one.reason[0].toUpperCase()}${one.reason.slice(1)}.`, class: "second" } : "",
      one.remedy ? { text: `Instead: ${one.remedy}`, class: "second act" } : "",
      causes(one) ? { text: `Calls lost: ${causes(one)}.`, class: "second" } : "",
      one.given_back_by_lane > 0 ? { text: `Run alone after a lane returned them: ${count(one.given_back_by_lane)}.`, class: "second" } : ""]),
  },
  {
    label: "Verdict", tight: true,
    cell: (cell, one) => {
      if (cell.dataset.verdict === one.verdict) return;
      cell.dataset.verdict = one.verdict;
      cell.replaceChildren(chip(one.verdict, LOOKS[one.verdict]));
    },
  },
  { label: "Calls lost", num: true, title: "Calls that did not run in a batch", cell: (cell, one) => emphasis(cell, count(one.passed), one.passed === 0, true) },
  { label: "Calls", num: true, text: (one) => count(one.runs) },
  { label: "Packed", num: true, cell: (cell, one) => meter(cell, percent((one.packed + one.merged) / one.runs), (one.packed + one.merged) / one.runs, "green") },
  { label: "Failed in lane", num: true, cell: (cell, one) => emphasis(cell, count(one.failed_in_lane), one.failed_in_lane === 0) },
];

export function mount(root) {
  const list = table("Statements", COLUMNS, { key: (one) => `${one.pool} ${one.statement}` });
  const none = empty("No statements yet", "A statement appears here after its first call through the gateway.");
  const other = empty("None of the statements fits this filter");
  none.hidden = other.hidden = true; // until numbers have come
  const about = el("p");
  let filter = "all", statements = [], known = false;
  const buttons = Object.keys(FILTERS).map((name) => el("button", {
    type: "button", "aria-pressed": String(name === filter),
    onclick: () => {
      filter = name;
      buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(Object.keys(FILTERS)[index] === name)));
      show();
    },
  }, LABELS[name]));
  const show = () => {
    const some = statements.filter(FILTERS[filter]);
    list.update(some);
    list.node.hidden = some.length === 0;
    none.hidden = !known || statements.length > 0;
    other.hidden = some.length > 0 || statements.length === 0;
  };
  root.append(
    el("div", { class: "head" }, el("h1", {}, "What is packed, and what to write instead"), el("div", { class: "filters", role: "group", "aria-label": "Filter" }, ...buttons), about),
    el("section", { class: "panel flush", "aria-label": "Statements" }, list.node, none, other));
  return {
    update({ state }) {
      if (!state) return;
      known = true;
      statements = [...state.statements].sort((one, other) => other.passed - one.passed);
      const { runs, passed, shapes } = state.statement_totals;
      const listed = shapes > statements.length ? `the ${count(statements.length)} of ${count(shapes)} with the most calls, ` : "";
      setText(about, `${runs ? `${count(passed)} of ${count(runs)} calls did not run in a batch. ` : ""}Shapes without values, ${listed}those with the most calls lost first.`);
      show();
    },
  };
}
