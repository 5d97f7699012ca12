// The tab Now: rates, latencies, what lanes do, and what the server's sessions wait for.
import { el, empty, panel, setShare, setText, tile } from "/page/dom.js";
import { columns, sparkline } from "/page/chart.js";
import { count, duration, millis, plural, rate, ratio } from "/page/format.js";
import { hotKeys } from "/page/keys.js";

const LANE_STATES = [["gathering", "sky"], ["executing", "blue"], ["committing", "green"], ["blocked", "red"]];
const WAIT_TONES = [["running", "green"], ["Lock", "red"], ["LWLock", "orange"], ["IO", "blue"], ["Client", "grey"], ["other", "pink"]];
const NAMED = new Set(WAIT_TONES.map(([type]) => type));
const waitType = (wait) => (wait.type === null ? "running" : NAMED.has(wait.type) ? wait.type : "other");
const LANES = 6;

// The last two minutes of lanes and waits, kept while other tabs are shown.
const lanes = columns("Units in lanes by state", LANE_STATES.map(([, tone]) => tone));
const waits = columns("Active sessions by wait", WAIT_TONES.map(([, tone]) => tone));

// Notes a state for the charts.
export function remember(state) {
  lanes.add(LANE_STATES.map(([name]) => state.lane_sums[name]));
  const sums = Object.fromEntries(WAIT_TONES.map(([type]) => [type, 0]));
  if (!state.server_problem) for (const wait of state.server?.waits ?? []) sums[waitType(wait)] += wait.sessions;
  waits.add(WAIT_TONES.map(([type]) => sums[type]));
}

export function mount(root) {
  const head = el("h1", {}, "Waiting for the first numbers");
  const hint = el("p", {});
  const attention = el("ul", { class: "problem", "aria-label": "Needs attention", hidden: true });
  const tiles = makeTiles();
  const start = el("section", { class: "panel", hidden: true });
  const [lanePanel, serverPanel, keyPanel] = [makeLanes(), makeServer(), hotKeys(5)];
  root.append(
    el("div", { class: "head" }, head, hint), attention, start, tiles.node,
    el("div", { class: "grid even" }, lanePanel.node, serverPanel.node), keyPanel.node);
  return {
    update({ state, about, points, now }) {
      if (!state) return;
      setText(head, headline(state));
      setText(hint, subline(state));
      const none = state.totals.units_packed + state.totals.reads_packed + state.totals.units_passed === 0 || onlyOwn(state);
      showStart(start, none, about);
      showAttention(attention, state);
      tiles.update(state, points, now);
      lanePanel.update(state);
      serverPanel.update(state);
      keyPanel.update(state, about);
    },
  };
}

// Whether only the gateway's own HTTP sessions have run something.
function onlyOwn(state) {
  const packed = state.totals.units_packed + state.totals.reads_packed;
  return packed === 0 && state.keys.length === 0 && state.applications.every((one) => one.name === "hotrow http");
}

export function headline(state) {
  if (state.units === 0) return standstill(state);
  if (state.saved < 0.5) return `${rate(state.units)} units per second`;
  const batches = state.packed - state.saved;
  return `${rate(state.units)} units per second, ${ratio(state.packed / Math.max(batches, 1e-9))} writes in each commit`;
}

// Nothing was answered in the last second.
function standstill(state) {
  if (state.server_problem) return "PostgreSQL does not answer";
  const waiting = state.applications.reduce((sum, one) => sum + one.active + one.waiting, 0);
  return waiting ? `No answers at this moment, ${plural(waiting, "client")} waiting` : "No traffic at this moment";
}

function subline(state) {
  const parts = [
    [state.packed - state.merged, "packed"], [state.merged, "merged"], [state.reads, "read by key"], [state.passed, "passed through"],
  ].filter(([value]) => value > 0).map(([value, name]) => `${rate(value)} ${name}`);
  const units = parts.length ? `Per second: ${parts.join(", ")}.` : `${plural(state.gauges.clients, "client")} connected.`;
  return [units, ...state.shadow.slice(0, 1).map(shadowLine)].join(" ");
}

// What the database and user with the most statements in shadow mode would gain.
export function shadowLine(found) {
  const share = count(found.would_pack / Math.max(found.statements, 1) * 100);
  const saved = rate(found.commits_saved / Math.max(found.seconds, 1));
  return `Shadow mode, ${found.database}: ${share} % of the statements would be packed, with ${ratio(found.units_per_commit)} writes in each commit and ${saved} commits saved per second.`;
}

function showStart(box, none, about) {
  box.hidden = !none;
  if (!none || box.firstChild || !about) return;
  const address = about.addresses[0] ?? "";
  const at = address.lastIndexOf(":");
  const [host, port] = address.startsWith("/") ? [address, ""] : [address.slice(0, at), address.slice(at + 1)];
  const command = `psql -h ${host === "0.0.0.0" ? "127.0.0.1" : host}${port ? ` -p ${port}` : ""} -U ${about.user} ${about.database}`;
  const where = port ? `Point an application at port ${port} instead of PostgreSQL's, or try:` : `Point an application at ${host} instead of PostgreSQL's socket, or try:`;
  box.append(empty("No units yet", where, command));
}

function showAttention(box, state) {
  const notes = [];
  const blocked = state.keys.filter((key) => key.blockers.length);
  if (blocked.length) notes.push([`${plural(blocked.length, "key")} blocked by a transaction outside the lanes.`, "#keys", "See which"]);
  if (state.refused > 0) notes.push([`${rate(state.refused)} clients or units refused per second.`, "#clients", "See the clients"]);
  const oldest = state.server?.oldest_transaction_seconds ?? 0;
  if (oldest > 300 && !state.server_problem) notes.push([`A transaction has been open for ${duration(oldest)}.`, "#server", "See the server"]);
  const wanted = JSON.stringify(notes);
  if (box.dataset.notes === wanted) return;
  box.dataset.notes = wanted;
  box.replaceChildren(...notes.map(([text, href, label]) => el("li", {}, `${text} `, el("a", { href }, label))));
  box.hidden = notes.length === 0;
}

function makeTiles() {
  const make = (label, series) => {
    const parts = tile(label, { tone: series.at(-1).tone, big: true });
    const spark = sparkline(label, series);
    parts.node.firstChild.append(spark.span);
    parts.node.append(spark.node);
    return { ...parts, spark };
  };
  const units = make("Units", [{ field: "units", tone: "blue" }]);
  const commits = make("Commits", [{ field: "commits", tone: "orange" }]);
  const saved = make("Commits saved", [{ field: "saved", tone: "green" }]);
  const flushes = make("WAL flushes", [{ field: "flushes", tone: "pink" }]);
  const latency = make("Latency, median", [{ field: "p99_ms", tone: "sky" }, { field: "p50_ms", tone: "blue" }]);
  const all = [units, commits, saved, flushes, latency];
  const node = el("div", { class: "tiles", role: "group", "aria-label": "Rates" }, ...all.map((one) => one.node));
  const update = (state, points, now) => {
    const total = state.units || 1;
    units.set(rate(state.units), "/s", `${count((state.packed + state.reads) / total * 100)} % in lanes`);
    commits.set(rate(state.commits), "/s", `${rate(Math.max(state.packed - state.saved, 0))} of batches`);
    saved.set(rate(state.saved), "/s", `${count(state.totals.units_packed - (state.totals.batches - state.totals.read_batches))} since the start`);
    flushes.set(rate(state.flushes), state.flushes === null ? "" : "/s", state.flushes === null ? "not known yet" : "of PostgreSQL's WAL");
    latency.set(...millis(state.p50_ms), `p99 ${millis(state.p99_ms).join(" ").trim()}`);
    all.forEach((one) => one.spark.update(points, now));
  };
  return { node, update };
}

function legend(entries) {
  const items = entries.map(([name, tone]) => {
    const number = el("b", {}, "0");
    return { name, number, node: el("li", {}, el("i", { class: `swatch tone-${tone}`, "aria-hidden": "true" }), el("span", {}, name), number) };
  });
  return { node: el("ul", { class: "legend" }, ...items.map((item) => item.node)), set: (values) => items.forEach((item) => setText(item.number, count(values[item.name] ?? 0))) };
}

// What tells a lane apart: a database can have lanes to its primary, to nodes of a cluster and to replicas.
export function laneName({ database, kind, lane, node, replica }) {
  const where = replica !== null ? ` on replica ${replica}` : node !== null ? ` on node ${node}` : "";
  return `${database} ${kind} ${lane}${where}`;
}

const laneUnits = (lane) => lane.queued_units + lane.units_under_way + lane.parked_units;

// The connected lanes with the most units, in an order that does not change with their units.
export function busiest(all) {
  const named = (one, other) => one.kind.localeCompare(other.kind) * -1 || one.database.localeCompare(other.database)
    || one.pool - other.pool || (one.node ?? -1) - (other.node ?? -1) || (one.replica ?? "").localeCompare(other.replica ?? "") || one.lane - other.lane;
  return all.filter((lane) => lane.backend_pid !== null)
    .sort((one, other) => laneUnits(other) - laneUnits(one) || named(one, other)).slice(0, LANES).sort(named);
}

function makeLanes() {
  const aside = el("span");
  const numbers = legend(LANE_STATES);
  const list = el("div", { class: "lanes" });
  const node = panel("Lanes: units by state", aside, lanes.node, numbers.node, list);
  const rows = [];
  const row = () => {
    const parts = { name: el("span"), bars: LANE_STATES.map(([, tone]) => el("i", { class: `tone-${tone}` })), number: el("span", { class: "num" }) };
    parts.bar = el("div", { class: "ribbon thin", "aria-hidden": "true" }, ...parts.bars);
    list.append(parts.name, parts.bar, parts.number);
    rows.push(parts);
    return parts;
  };
  const update = (state) => {
    setText(aside, `${state.gauges.lanes} connected`);
    numbers.set(state.lane_sums);
    const busy = busiest(state.lanes);
    const most = Math.max(1, ...busy.map(laneUnits));
    busy.forEach((lane, index) => {
      const parts = rows[index] ?? row();
      const units = [lane.queued_units, lane.units_under_way - lane.units_committing, lane.units_committing, lane.parked_units];
      setText(parts.name, laneName(lane));
      parts.bars.forEach((bar, place) => setShare(bar, units[place] / most));
      setText(parts.number, plural(laneUnits(lane), "unit"));
    });
    while (rows.length > busy.length) Object.values(rows.pop()).flat().forEach((part) => part.remove());
    list.hidden = busy.length === 0;
  };
  return { node, update };
}

function makeServer() {
  const aside = el("span");
  const numbers = legend(WAIT_TONES);
  const note = el("p", { class: "note" });
  const node = panel("Server: active sessions by wait", aside, waits.node, numbers.node, note);
  const update = (state) => {
    const server = state.server;
    setText(aside, server ? `${server.active} active of ${server.connections}` : "");
    const sums = {};
    for (const wait of server?.waits ?? []) sums[waitType(wait)] = (sums[waitType(wait)] ?? 0) + wait.sessions;
    numbers.set(sums);
    const top = (server?.waits ?? []).filter((wait) => wait.type).slice(0, 3).map((wait) => `${wait.sessions} × ${wait.type}: ${wait.event}`);
    let text = top.length ? top.join(" · ") : "No session waits.";
    if (state.server_problem) text = server ? "PostgreSQL does not answer. These are its last numbers." : "PostgreSQL does not answer.";
    else if (!server) text = "The first sample arrives in a moment.";
    else if (server.hidden) text += ` ${plural(server.hidden, "session")} of other roles hidden: grant pg_monitor to ${server.role} to see them.`;
    setText(note, text);
  };
  return { node, update };
}
