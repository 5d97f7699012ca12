// The orders of a queue: a list by state, and one order with its payload.
import { chip, el, empty, setText } from "/page/dom.js";
import { read, request, segment } from "/page/api.js";
import { show } from "/page/exact.js";
import { clock, duration, relative } from "/page/format.js";
import { action, pages, reportBox } from "/page/lookup.js";
import { lines, table } from "/page/table.js";

export const STATES = ["waiting", "delayed", "leased", "dead", "processed"];
const LOOKS = { dead: "bad", processed: "good", leased: "info", delayed: "warn" };
const PAGE = 50;

const EMPTY = {
  waiting: ["No order waits", "Orders that can be taken now are listed here."],
  delayed: ["No order is delayed", "Orders that wait for a time or for their next attempt are listed here."],
  leased: ["No order is taken", "Orders that workers have are listed here."],
  dead: ["No dead letters", "Orders that failed their last attempt are listed here."],
  processed: ["No processed orders", "Finished orders are listed here until the queue's retention has passed."],
};

function outcome(order) {
  if (order.error !== null && order.error !== undefined) return [{ text: order.error, class: "" }];
  if (order.done_at) return [`done ${relative(order.done_at)}`, `status ${show(order.status)}`];
  if (order.taken_at && order.due) return [`lease ${Date.parse(order.due) > Date.now() ? "ends" : "ended"} ${relative(order.due)}`, `taken ${relative(order.taken_at)}`];
  if (order.due) return [`due ${relative(order.due)}`];
  return [""];
}

// The orders of a queue in a state, with a button to retry each dead one.
export function orderList(queue, state, model) {
  const path = `/v1/queues/${segment(queue)}`;
  const report = reportBox();
  let wanted = PAGE;
  const list = table(`Orders: ${state}`, [
    {
      label: "Order", main: true,
      cell: (cell, order) => {
        if (!cell.firstChild) cell.append(el("a", { class: "mono" }), el("span", { class: "second" }));
        cell.firstChild.setAttribute("href", `#queues/${segment(queue)}/order/${order.order_id}`);
        setText(cell.firstChild, order.order_id);
        setText(cell.lastChild, `id ${show(order.id)}${order.group_key === null ? "" : `, group ${order.group_key}`}`);
      },
    },
    { label: "Attempt", num: true, text: (order) => show(order.attempt) },
    { label: "Enqueued", tight: true, cell: (cell, order) => { setText(cell, relative(order.enqueued_at)); cell.title = clock(order.enqueued_at); } },
    ...(state === "waiting" ? [] : [{ label: { delayed: "Due", leased: "Lease", dead: "Error", processed: "Result" }[state], wide: true, cell: (cell, order) => lines(cell, outcome(order)) }]),
    ...(state === "dead" ? [{
      label: "Retry", hide: true, tight: true,
      cell: (cell, order) => {
        if (!(model.about?.can_change) || cell.firstChild) return;
        cell.append(action("Retry", {
          box: report,
          run: async () => {
            await request("POST", `${path}/redrive`, { body: { order_id: order.order_id } });
            await refresh();
            return `Order ${order.order_id} was brought back.`;
          },
        }));
      },
    }] : []),
  ], { key: (order) => order.order_id });
  const none = empty(...EMPTY[state]);
  const more = el("button", { type: "button", onclick: () => { wanted += PAGE; refresh().catch(() => {}); } }, "More orders");
  const foot = el("p", { class: "foot", hidden: true }, more);
  [list.node.hidden, none.hidden] = [true, true];
  async function refresh() {
    const result = await pages(wanted, PAGE, async (last, max) => (await read(`${path}/orders`, { state, after: last ? show(last.id) : 0, max })).orders);
    list.update(result.all);
    list.node.hidden = result.all.length === 0;
    none.hidden = result.all.length > 0;
    foot.hidden = !result.more;
  }
  const node = el("div", { class: "stack" }, report, el("section", { class: "panel flush", "aria-label": `Orders: ${state}` }, list.node, none, foot));
  return { node, refresh };
}

const TIMES = { created_at: "Created", enqueued_at: "Enqueued", not_before: "Not before", taken_at: "Taken", due: "Due", done_at: "Done" };
const TEXTS = { id: "Number", attempt: "Attempts", group_key: "Group", status: "Status", error: "Error" };
const DOCUMENTS = { payload: "Payload", result: "Result" };

// One order with all its fields.
export function orderDetail() {
  const facts = el("dl", { class: "facts" });
  const node = el("section", { class: "panel", "aria-label": "Order", hidden: true }, facts);
  let before = "";
  const fact = (name, value) => facts.append(el("dt", {}, name), el("dd", {}, value));
  const update = (order) => {
    const now = JSON.stringify(order);
    node.hidden = false;
    if (now === before) return;
    before = now;
    facts.replaceChildren();
    fact("State", chip(order.state, LOOKS[order.state]));
    for (const [field, name] of Object.entries(TEXTS)) if (order[field] !== null) fact(name, show(order[field]));
    for (const [field, name] of Object.entries(TIMES)) {
      if (!order[field]) continue;
      const away = Math.abs(Date.parse(order[field]) - Date.now()) / 1000;
      fact(name, `${clock(order[field])} (${away < 1 ? "now" : Date.parse(order[field]) > Date.now() ? `in ${duration(away)}` : `${duration(away)} ago`})`);
    }
    for (const [field, name] of Object.entries(DOCUMENTS)) if (order[field] !== null) fact(name, el("pre", {}, show(order[field])));
  };
  return { node, update };
}
