// Fills the page of queues from the API with read-only requests. Every text is inserted as text, never as HTML.
"use strict";

const STATES = ["waiting", "delayed", "leased", "dead", "processed"];
const PAGE = 50, REFRESH_MS = 5000;
const find = (id) => document.getElementById(id);
let token = ""; // in this page's memory only
let chosen = null; // the queue and the state whose orders are shown
let latest = 0; // number of the last request for orders; older answers are dropped

function add(parent, name, text) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = show(text);
  parent.append(element);
  return element;
}

function link(parent, text, follow) {
  const button = add(parent, "button", text);
  button.type = "button";
  button.addEventListener("click", follow);
  return button;
}

async function read(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const reply = await fetch(query ? `${path}?${query}` : path, { headers, cache: "no-store" });
  const body = parseExactly(await reply.text());
  find("login").hidden = reply.status !== 401;
  if (!reply.ok) throw new Error(`${body.detail}\n${body.hint ?? ""}`);
  return body;
}

// Runs a task, and shows its error.
async function attempt(task) {
  const problem = find("problem");
  try {
    await task();
    problem.hidden = true;
  } catch (error) {
    problem.textContent = error.message;
    problem.hidden = false;
  }
}

function age(time) {
  if (!time) return "";
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  for (const [name, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (seconds >= 2 * length) return `${Math.floor(seconds / length)} ${name}`;
  }
  return `${Math.floor(seconds)} s`;
}

const rate = (perSecond) => Number(show(perSecond)).toFixed(1);
const path = (queue) => `/v1/queues/${encodeURIComponent(queue)}`;

let pages = 1; // of queues

async function showQueues() {
  const queues = [];
  let more = true;
  for (let page = 0; page < pages && more; page++) {
    const after = queues.length ? queues[queues.length - 1].queue : "";
    const some = (await read("/v1/queues", { after, max: PAGE })).queues;
    queues.push(...some);
    more = some.length === PAGE;
  }
  const rows = document.createDocumentFragment();
  for (const queue of queues) {
    const row = add(rows, "tr");
    link(add(row, "td"), queue.queue, () => choose(queue.queue, "waiting"));
    if (queue.paused) add(row.firstChild, "span", " (paused)");
    for (const value of [
      queue.depth, age(queue.oldest), queue.in_flight, queue.dead, queue.processed,
      rate(queue.enqueued_per_second), rate(queue.processed_per_second),
    ]) add(row, "td", value);
  }
  const table = find("queues");
  table.tBodies[0].replaceChildren(rows);
  table.hidden = false;
  find("more-queues").hidden = !more;
}

function choose(queue, state) {
  chosen = { queue, state };
  find("order").hidden = true;
  find("orders").querySelector("h2").textContent = queue;
  const states = find("states");
  states.replaceChildren();
  for (const name of STATES) {
    const button = link(states, name, () => choose(queue, name));
    if (name === state) button.setAttribute("aria-current", "true");
  }
  find("orders").querySelector("tbody").replaceChildren();
  find("orders").hidden = false;
  attempt(() => showOrders(0));
}

function then(order) {
  if (order.error !== null) return order.error;
  if (order.done_at) return `done ${age(order.done_at)} ago, status ${order.status}`;
  if (order.due) return `${order.taken_at ? "leased until" : "due"} ${order.due}`;
  return "";
}

async function showOrders(after) {
  const request = ++latest;
  const { queue, state } = chosen;
  const { orders } = await read(`${path(queue)}/orders`, { state, after, max: PAGE });
  if (request !== latest) return;
  const rows = find("orders").querySelector("tbody");
  for (const order of orders) {
    const row = add(rows, "tr");
    add(row, "td", order.id);
    link(add(row, "td"), order.order_id, () => attempt(() => showOrder(queue, order.order_id)));
    for (const value of [order.attempt, order.group_key ?? "", age(order.enqueued_at), then(order)]) {
      add(row, "td", value);
    }
  }
  const more = find("more-orders");
  more.hidden = orders.length < PAGE;
  if (orders.length) more.onclick = () => attempt(() => showOrders(show(orders[orders.length - 1].id)));
  find("none").hidden = rows.childElementCount > 0;
}

async function showOrder(queue, id) {
  const order = await read(`${path(queue)}/orders/${id}`);
  const section = find("order");
  section.querySelector("h2").textContent = `Order ${id}`;
  const list = section.querySelector("dl");
  list.replaceChildren();
  for (const [name, value] of Object.entries(order)) {
    if (value === null) continue;
    add(list, "dt", name);
    add(list, "dd", value);
  }
  section.hidden = false;
  section.scrollIntoView({ block: "nearest" });
}

find("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token = find("token").value;
  find("token").value = "";
  attempt(showQueues);
});
find("more-queues").addEventListener("click", () => {
  pages++;
  attempt(showQueues);
});
attempt(showQueues);
setInterval(() => {
  if (!document.hidden && find("login").hidden) attempt(showQueues);
}, REFRESH_MS);
