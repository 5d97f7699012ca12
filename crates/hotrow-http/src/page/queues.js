// The tab Queues: all queues, one queue (#queues/NAME/STATE) and one order (#queues/NAME/order/ID).
import { chip, el, empty, setText, tile } from "/page/dom.js";
import { read, request, segment } from "/page/api.js";
import { integer, show } from "/page/exact.js";
import { clock, count, duration, rate } from "/page/format.js";
import { action, pages, problemBox, refreshing, reportBox, search } from "/page/lookup.js";
import { emphasis, lines, table } from "/page/table.js";
import { orderDetail, orderList, STATES } from "/page/orders.js";

const PAGE = 50;
const number = (value) => Number(show(value));
const perSecond = (value) => rate(number(value));
export const queueLink = (...parts) => `#queues/${parts.map(segment).join("/")}`;
export const queuePath = (queue) => `/v1/queues/${segment(queue)}`;
const ageOf = (time) => (time ? duration((Date.now() - Date.parse(time)) / 1000) : "–");
const OLD_SECONDS = 3600;
const isOld = (time) => time !== null && Date.now() - Date.parse(time) > OLD_SECONDS * 1000;

const COLUMNS = [
  {
    label: "Queue", main: true,
    cell: (cell, one) => {
      if (!cell.firstChild) cell.append(el("a", { href: queueLink(one.queue) }, one.queue), el("span", { class: "beside" }));
      const wanted = one.paused ? "paused" : "";
      if (cell.lastChild.textContent !== wanted) cell.lastChild.replaceChildren(...(wanted ? [chip(wanted, "warn")] : []));
    },
  },
  { label: "Waiting", num: true, cell: (cell, one) => emphasis(cell, integer(one.depth), number(one.depth) === 0) },
  { label: "Oldest", num: true, title: "Age of the order that waits longest", cell: (cell, one) => emphasis(cell, ageOf(one.oldest), one.oldest === null, isOld(one.oldest)) },
  { label: "In flight", num: true, cell: (cell, one) => emphasis(cell, integer(one.in_flight), number(one.in_flight) === 0) },
  { label: "Dead", num: true, cell: (cell, one) => emphasis(cell, integer(one.dead), number(one.dead) === 0, true) },
  { label: "Processed", num: true, text: (one) => integer(one.processed) },
  { label: "In/s", num: true, text: (one) => perSecond(one.enqueued_per_second) },
  { label: "Out/s", num: true, text: (one) => perSecond(one.processed_per_second) },
];

const isChangeable = (model) => model.about?.can_change ?? false;

function mountList(root) {
  const problem = problemBox();
  const about = el("p", {}, "Rates of the last full minute.");
  const queues = table("Queues", COLUMNS, { key: (one) => one.queue, look: (one) => (number(one.dead) > 0 ? "bad" : "") });
  const none = empty("No queues yet", "Create one in SQL, and add orders to it:", "select hotrow.create_queue('orders')");
  none.hidden = true;
  let wanted = PAGE;
  const more = el("button", { type: "button", onclick: () => { wanted += PAGE; loop.now(); } }, "More queues");
  const foot = el("p", { class: "foot", hidden: true }, more);
  root.append(
    el("div", { class: "head" }, el("h1", {}, "Queues"), search("Name of a queue", (name) => { location.hash = queueLink(name); }), about),
    problem, el("section", { class: "panel flush", "aria-label": "Queues" }, queues.node, none, foot));
  queues.node.hidden = true;
  const loop = refreshing(problem, async () => {
    const { all, more } = await pages(wanted, PAGE, async (last, max) => (await read("/v1/queues", { after: last?.queue ?? "", max })).queues);
    queues.update(all);
    queues.node.hidden = all.length === 0;
    none.hidden = all.length > 0;
    foot.hidden = !more;
    const dead = all.reduce((sum, one) => sum + number(one.dead), 0);
    setText(about, all.length ? `${count(all.length)} queues${more ? " shown" : ""}, ${count(dead)} dead letters. Rates of the last full minute.` : "");
  });
  return loop;
}

function queueActions(queue, report, done) {
  const post = async (name, body) => {
    const answer = await request("POST", `${queuePath(queue)}/${name}`, { body });
    done();
    return answer;
  };
  const pause = action("Pause", { box: report, run: async () => { await post("pause"); return "Paused: no more orders are handed out. Workers keep the orders they have."; } });
  const resume = action("Resume", { box: report, run: async () => { await post("resume"); return "Resumed."; } });
  const redrive = action("Redrive dead letters", {
    box: report, danger: true, ask: "Really bring all of them back?",
    run: async () => { const answer = await post("redrive", { max: 1000 }); return `Brought back: ${show(Object.values(answer)[0])}. Their attempts begin again at 0.`; },
  });
  const node = el("div", { class: "actions" }, pause, resume, redrive);
  return {
    node,
    update(stats, changeable) {
      node.hidden = !changeable;
      pause.hidden = stats.paused;
      resume.hidden = !stats.paused;
      redrive.hidden = number(stats.dead) === 0;
    },
  };
}

function mountQueue(root, model, [queue, state]) {
  const [problem, report, paused] = [problemBox(), reportBox(), chip("paused", "warn")];
  paused.hidden = true;
  const tiles = Object.fromEntries(["Waiting", "In flight", "Dead", "Processed", "In", "Out"].map((name) => [name, tile(name)]));
  const states = el("nav", { class: "filters", "aria-label": "State" }, ...STATES.map((name) =>
    el("a", { href: queueLink(queue, name), "aria-current": name === state ? "page" : undefined }, name)));
  const orders = orderList(queue, state, model);
  const actions = queueActions(queue, report, () => loop.now());
  root.append(
    el("p", { class: "crumbs" }, el("a", { href: "#queues" }, "Queues")),
    el("div", { class: "head" }, el("h1", {}, queue, " ", paused), actions.node), report, problem,
    el("div", { class: "tiles small six" }, ...Object.values(tiles).map((one) => one.node)),
    el("div", { class: "head" }, states, search("ID of an order", (id) => { location.hash = queueLink(queue, "order", id); })),
    orders.node);
  const update = (stats) => {
    paused.hidden = !stats.paused;
    tiles.Waiting.set(integer(stats.depth), "", stats.oldest ? `oldest ${ageOf(stats.oldest)}` : "", isOld(stats.oldest) ? "warn" : "");
    tiles["In flight"].set(integer(stats.in_flight), "", "taken by workers");
    tiles.Dead.set(integer(stats.dead), "", "failed their last attempt", number(stats.dead) ? "bad" : "");
    tiles.Processed.set(integer(stats.processed), "", `of ${integer(stats.enqueued)}`);
    tiles.In.set(perSecond(stats.enqueued_per_second), "/s", "last full minute");
    tiles.Out.set(perSecond(stats.processed_per_second), "/s", "last full minute");
    actions.update(stats, isChangeable(model));
  };
  const loop = refreshing(problem, async () => {
    update(await read(queuePath(queue)));
    await orders.refresh();
  });
  return loop;
}

function mountOrder(root, model, queue, id) {
  const [problem, report] = [problemBox(), reportBox()];
  const detail = orderDetail();
  const retry = action("Retry this order", {
    box: report,
    run: async () => {
      await request("POST", `${queuePath(queue)}/redrive`, { body: { order_id: id } });
      loop.now();
      return "Brought back: a worker takes it as if it were new.";
    },
  });
  retry.hidden = true;
  const time = el("p", {}, "");
  root.append(
    el("p", { class: "crumbs" }, el("a", { href: "#queues" }, "Queues"), " / ", el("a", { href: queueLink(queue) }, queue)),
    el("div", { class: "head" }, el("h1", {}, "Order ", el("span", { class: "mono" }, id)), retry, time), report, problem, detail.node);
  const loop = refreshing(problem, async () => {
    const order = await read(`${queuePath(queue)}/orders/${segment(id)}`);
    detail.update(order);
    retry.hidden = order.state !== "dead" || !isChangeable(model);
    setText(time, `As of ${clock(new Date())}.`);
  });
  return loop;
}

export function mount(root, model) {
  let loop = null, place = null;
  return {
    route(parts) {
      const wanted = parts.join("\u0001");
      if (place === wanted) return;
      place = wanted;
      loop?.stop();
      root.replaceChildren();
      const [queue, second, id] = parts;
      if (!queue) loop = mountList(root);
      else if (second === "order" && id) loop = mountOrder(root, model, queue, id);
      else loop = mountQueue(root, model, [queue, STATES.includes(second) ? second : "waiting"]);
    },
    leave() { loop?.stop(); },
  };
}
