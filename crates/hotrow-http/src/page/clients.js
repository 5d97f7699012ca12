// The tab Clients: by application, and those that wait, are pinned or hold a transaction open.
import { chip, el, empty, setText, tile } from "/page/dom.js";
import { bytes, count, duration, percent, plural } from "/page/format.js";
import { emphasis, limited, lines, meter, table } from "/page/table.js";

// Clients that the tab shows before the reader asks for all.
const FIRST = 15;

const name = (text) => text || "(no name)";

const APPLICATIONS = [
  { label: "Application", main: true, cell: (cell, one) => lines(cell, [{ text: name(one.name), as: "strong" }]) },
  { label: "Clients", num: true, text: (one) => count(one.clients) },
  { label: "Active", num: true, cell: (cell, one) => emphasis(cell, count(one.active), one.active === 0) },
  { label: "Waiting", num: true, cell: (cell, one) => emphasis(cell, count(one.waiting), one.waiting === 0, true) },
  { label: "In a transaction", num: true, cell: (cell, one) => emphasis(cell, count(one.in_transaction), one.in_transaction === 0) },
  { label: "Pinned", num: true, cell: (cell, one) => emphasis(cell, count(one.pinned), one.pinned === 0, true) },
  { label: "Units", num: true, text: (one) => count(one.units_packed + one.units_passed) },
  {
    label: "In lanes", num: true,
    cell: (cell, one) => {
      const share = one.units_packed / (one.units_packed + one.units_passed);
      meter(cell, percent(share), share, "green");
    },
  },
];

const LOOKS = { waiting: "bad", pinned: "warn", in_transaction: "info", active: "good", idle: "" };

const CLIENTS = [
  {
    label: "Client", main: true,
    cell: (cell, one) => lines(cell, [{ text: name(one.application_name), as: "strong" }, `${one.user} in ${one.database}, ${one.address}${one.tls ? ", TLS" : ""}`]),
  },
  {
    label: "State", wide: true,
    cell: (cell, one) => {
      if (cell.dataset.state === one.state) return;
      cell.dataset.state = one.state;
      cell.replaceChildren(chip(one.state, LOOKS[one.class]));
    },
  },
  { label: "Last message", num: true, text: (one) => `${duration(one.since_seconds)} ago` },
  { label: "Server pid", num: true, text: (one) => String(one.backend_pid ?? "–") },
  { label: "Client pid", num: true, text: (one) => String(one.process_id) },
  { label: "Units", num: true, text: (one) => count(one.units_packed + one.units_passed) },
  { label: "Unread", num: true, cell: (cell, one) => emphasis(cell, bytes(one.unread_bytes), one.unread_bytes === 0, one.unread_bytes > 1e6) },
];

export function mount(root) {
  const applications = table("Clients by application", APPLICATIONS, { key: (one) => one.name });
  const clients = table("Clients", CLIENTS, { key: (one) => one.process_id });
  const limit = limited(clients, FIRST, "clients");
  const [all, waiting, pinned, open] = [tile("Clients"), tile("Waiting"), tile("Pinned"), tile("Idle in a transaction")];
  const none = empty("No clients", "Point an application at the gateway's port instead of PostgreSQL's.");
  none.hidden = true; // until numbers have come
  const aside = el("span");
  root.append(
    el("div", { class: "head" }, el("h1", {}, "Which clients are connected, and which cannot share a connection")),
    el("div", { class: "tiles small four" }, all.node, waiting.node, pinned.node, open.node),
    el("section", { class: "panel flush", "aria-label": "Clients by application" }, el("header", {}, el("h2", {}, "By application")), applications.node, none),
    el("section", { class: "panel flush", "aria-label": "Clients" }, el("header", {}, el("h2", {}, "Clients"), aside), clients.node, limit.foot,
      el("p", { class: "note foot" }, "A pinned client keeps a server connection for itself, for the reason that its state names. On the console, KILL_CLIENT with the client pid disconnects a client.")));
  return {
    update({ state }) {
      if (!state) return;
      const sum = (field) => state.applications.reduce((sum, one) => sum + one[field], 0);
      all.set(count(state.client_count), "", plural(state.applications.length, "application"));
      waiting.set(count(sum("waiting")), "", "for a row or a connection", sum("waiting") ? "bad" : "");
      pinned.set(count(sum("pinned")), "", "keep a server connection", sum("pinned") ? "warn" : "");
      open.set(count(sum("in_transaction")), "", "hold a server connection");
      applications.update(state.applications);
      limit.update(state.clients);
      setText(aside, state.client_count > state.clients.length ? `${state.clients.length} of ${state.client_count}, those with a problem first` : "those with a problem first");
      none.hidden = state.client_count > 0;
    },
  };
}
