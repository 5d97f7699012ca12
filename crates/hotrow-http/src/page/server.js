// The tab Server: connections, waits and replication of PostgreSQL, and the gateway's connections to it.
import { el, empty, panel, setText, tile } from "/page/dom.js";
import { bytes, count, duration, percent, plural, rate } from "/page/format.js";
import { emphasis, lines, meter, table } from "/page/table.js";

// What an operator can do about a wait.
const ADVICE = {
  "Lock: transactionid": "Sessions wait for another transaction's row. See the tab Keys, or run hotrow doctor.",
  "Lock: tuple": "Several sessions wait for one row. Send these statements through the gateway as single statements.",
  "IO: WALSync": "The WAL is flushed. Packing more statements saves flushes.",
  "LWLock: WALWrite": "Sessions wait for a WAL flush by another session.",
  "IO: DataFileRead": "Pages are read from disk: look for a missing index or too small shared_buffers.",
  "Client: ClientRead": "The server waits for a client in the middle of its work.",
};

const waitName = (wait) => (wait.type === null ? "running on a CPU" : `${wait.type}: ${wait.event}`);

export function mount(root) {
  const names = ["Connections", "Active", "Idle in a transaction", "Oldest transaction", "Commits", "WAL written", "WAL flushes", "Deadlocks"];
  const tiles = Object.fromEntries(names.map((name) => [name, tile(name)]));
  let active = 1;
  const waits = table("Waits", [
    { label: "Active sessions", main: true, cell: (cell, wait) => lines(cell, [{ text: waitName(wait), as: "strong" }, ADVICE[waitName(wait)] ?? ""]) },
    { label: "Sessions", num: true, cell: (cell, wait) => meter(cell, count(wait.sessions), wait.sessions / active, wait.type === null ? "green" : "blue") },
  ], { key: waitName });
  const standbys = table("Standbys", [
    { label: "Standby", main: true, cell: (cell, one) => lines(cell, [{ text: one.name || "(no name)", as: "strong" }, "standby of this server"]) },
    { label: "State", tight: true, text: (one) => one.state ?? "–" },
    { label: "Synchronous", tight: true, text: (one) => one.sync ?? "–" },
    { label: "Behind", num: true, cell: (cell, one) => emphasis(cell, bytes(one.behind_bytes), !one.behind_bytes, one.behind_bytes > 1e8) },
  ], { key: (one) => one.name });
  const slots = table("Replication slots", [
    { label: "Slot", main: true, cell: (cell, one) => lines(cell, [{ text: one.name, as: "strong" }, one.active ? "replication slot" : "replication slot: no receiver uses it, and it keeps WAL"]) },
    { label: "Kind", tight: true, text: (one) => one.kind ?? "–" },
    { label: "In use", tight: true, cell: (cell, one) => emphasis(cell, one.active ? "yes" : "no", one.active, true) },
    { label: "WAL kept", num: true, cell: (cell, one) => emphasis(cell, bytes(one.held_bytes), !one.held_bytes, one.held_bytes > 1e9) },
  ], { key: (one) => one.name });
  const [facts, own] = [el("dl", { class: "facts short" }), el("dl", { class: "facts short" })];
  const hidden = el("p", { class: "note foot" });
  const noWaits = empty("No session is active");
  const noStandbys = empty("No standby and no replication slot", "A standby appears here when it connects to this server.");
  const head = el("h1", {}, "PostgreSQL");
  const body = el("div", { class: "stack" },
    el("div", { class: "tiles small four wide" }, ...names.map((name) => tiles[name].node)),
    el("div", { class: "grid even" },
      el("section", { class: "panel flush", "aria-label": "Waits" }, el("header", {}, el("h2", {}, "What active sessions wait for")), waits.node, noWaits, hidden),
      el("section", { class: "panel flush", "aria-label": "Replication" }, el("header", {}, el("h2", {}, "Replication")), standbys.node, slots.node, noStandbys)),
    el("div", { class: "grid even" }, panel("Server", null, facts), panel("The gateway's connections", null, own)));
  const first = empty("No numbers from PostgreSQL yet", "The first sample arrives in a moment.");
  const none = el("section", { class: "panel" }, first);
  const old = el("p", { hidden: true }, "These numbers are from the last sample before PostgreSQL stopped answering.");
  root.append(el("div", { class: "head" }, head, old), none, body);
  const update = ({ state, about }) => {
    const server = state?.server;
    none.hidden = Boolean(server);
    if (state?.server_problem) setText(first.lastChild, "PostgreSQL does not answer. The reason is at the top of the page.");
    body.hidden = !server;
    old.hidden = !server || !state.server_problem;
    if (!server) return;
    active = Math.max(1, server.active);
    setText(head, `PostgreSQL ${server.version}${server.standby ? ", a standby" : ""}`);
    setTiles(tiles, server);
    waits.update(server.waits);
    noWaits.hidden = server.waits.length > 0;
    standbys.update(server.standbys);
    slots.update(server.slots);
    standbys.node.hidden = server.standbys.length === 0;
    slots.node.hidden = server.slots.length === 0;
    noStandbys.hidden = server.standbys.length + server.slots.length > 0;
    hidden.hidden = server.hidden === 0;
    setText(hidden, `${plural(server.hidden, "session")} of other roles hidden. To see them: grant pg_monitor to ${server.role}`);
    setFacts(facts, [
      ["Server", about?.server], ["Database", server.database], ["Role", server.role], ["Up for", duration(server.up_seconds)],
      ["synchronous_commit", server.synchronous_commit]]);
    setFacts(own, [
      ["Lanes", plural(state.gauges.lanes, "connection")], ["Outside lanes", plural(state.gauges.held_connections, "connection")],
      ["Units in queues", count(state.gauges.queued_units)], ["Units behind a locked row", count(state.gauges.parked_units)],
      ["Transactions that wait for a row", count(state.gauges.row_waits)], ["Calls that wait for an order", count(state.gauges.waiting_calls)]]);
  };
  return { update };
}

function setTiles(tiles, server) {
  const full = server.connections / server.max_connections;
  tiles.Connections.set(count(server.connections), `of ${count(server.max_connections)}`, `${percent(full)} in use`, full > .9 ? "bad" : full > .75 ? "warn" : "");
  tiles.Active.set(count(server.active), "", `${count(server.idle)} idle`);
  tiles["Idle in a transaction"].set(count(server.idle_in_transaction), "", "hold locks and snapshots");
  const oldest = server.oldest_transaction_seconds;
  tiles["Oldest transaction"].set(duration(oldest), "", oldest > 300 ? "keeps dead rows from cleaning" : "", oldest > 300 ? "warn" : "");
  const change = server.per_second ?? {};
  const perSecond = (value) => (Number.isFinite(value) ? "/s" : "");
  tiles.Commits.set(rate(change.commits), perSecond(change.commits), Number.isFinite(change.rollbacks) ? `${rate(change.rollbacks)} rolled back` : "");
  tiles["WAL written"].set(bytes(change.wal_bytes), perSecond(change.wal_bytes), change.commits > 0 ? `${bytes(change.wal_bytes / change.commits)} for each commit` : "");
  tiles["WAL flushes"].set(rate(change.flushes), perSecond(change.flushes), change.flushes > 0 ? `${rate(change.commits / change.flushes)} commits each` : "");
  tiles.Deadlocks.set(rate(change.deadlocks), perSecond(change.deadlocks), "", change.deadlocks > 0 ? "bad" : "");
}

function setFacts(list, facts) {
  facts.forEach(([name, value], index) => {
    if (!list.children[2 * index]) list.append(el("dt", {}, name), el("dd"));
    setText(list.children[2 * index + 1], value ?? "–");
  });
}
