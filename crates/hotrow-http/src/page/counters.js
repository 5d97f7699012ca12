// The tab Counters: values, bounds, and the changes of each counter while the page is open.
import { el, empty, setText } from "/page/dom.js";
import { read, segment } from "/page/api.js";
import { integer, show } from "/page/exact.js";
import { clock, rate, relative } from "/page/format.js";
import { pages, problemBox, refreshing, search } from "/page/lookup.js";
import { emphasis, lines, meter, table } from "/page/table.js";

const PAGE = 50;
const KINDS = { ledger: "every change is in the ledger", log: "computed from its commands" };

function bounds(one) {
  if (one.minimum === null && one.maximum === null) return "no bounds";
  if (one.minimum === null) return `at most ${integer(one.maximum)}`;
  return one.maximum === null ? `at least ${integer(one.minimum)}` : `${integer(one.minimum)} to ${integer(one.maximum)}`;
}

// The place between both bounds.
function share(one) {
  if (one.minimum === null || one.maximum === null) return null;
  const [low, high, value] = [one.minimum, one.maximum, one.value].map((number) => Number(show(number)));
  return high > low ? (value - low) / (high - low) : 1;
}

const COLUMNS = [
  { label: "Counter", main: true, cell: (cell, one) => lines(cell, [{ text: one.counter, as: "strong" }, KINDS[one.strategy] ?? (one.strategy ?? "")]) },
  { label: "Value", num: true, cell: (cell, one) => {
    const part = share(one);
    if (part === null) setText(cell, integer(one.value));
    else meter(cell, integer(one.value), part, part > .9 || part < .1 ? "orange" : "blue");
  } },
  { label: "Bounds", num: true, text: bounds },
  { label: "Changes", num: true, text: (one) => integer(one.version) },
  { label: "Changes/s", num: true, title: "Since the last refresh", cell: (cell, one) => emphasis(cell, one.rate === null ? "–" : rate(one.rate), !one.rate) },
  { label: "Last change", num: true, cell: (cell, one) => { setText(cell, one.changed_at ? relative(one.changed_at) : "–"); if (one.changed_at) cell.title = clock(one.changed_at); } },
];

export function mount(root) {
  const problem = problemBox();
  const about = el("p");
  const counters = table("Counters", COLUMNS, { key: (one) => one.counter, look: (one) => (one.found ? "current" : "") });
  const none = empty("No counters yet", "The first increment creates one:", "select * from hotrow.increment('visits')");
  const before = new Map();
  let wanted = PAGE, found = null;
  const more = el("button", { type: "button", onclick: () => { wanted += PAGE; loop.now(); } }, "More counters");
  const foot = el("p", { class: "foot", hidden: true }, more);
  root.append(
    el("div", { class: "head" }, el("h1", {}, "Counters"), search("Name of a counter", (name) => { location.hash = `#counters/${segment(name)}`; }), about),
    problem, el("section", { class: "panel flush", "aria-label": "Counters" }, counters.node, none, foot));
  [counters.node.hidden, none.hidden] = [true, true];
  const withRate = (one) => {
    const [version, at, last] = [Number(show(one.version)), performance.now(), before.get(one.counter)];
    before.set(one.counter, { version, at });
    return { ...one, rate: last && at > last.at ? Math.max(0, version - last.version) / (at - last.at) * 1000 : null };
  };
  const loop = refreshing(problem, async () => {
    const result = await pages(wanted, PAGE, async (last, max) => (await read("/v1/counters", { after: last?.counter ?? "", max })).counters);
    let all = result.all;
    if (found !== null) {
      const known = all.find((one) => one.counter === found);
      const one = known ?? { counter: found, strategy: null, minimum: null, maximum: null, changed_at: null, ...await read(`/v1/counters/${segment(found)}`) };
      all = [{ ...one, found: true }, ...all.filter((other) => other !== known)];
    }
    counters.update(all.map(withRate));
    counters.node.hidden = all.length === 0;
    none.hidden = all.length > 0;
    foot.hidden = !result.more;
    setText(about, all.length ? `${all.length} counters${result.more ? " shown" : ""}. hotrow verify checks them against their histories.` : "");
  });
  return {
    route([name]) {
      if (found === (name || null)) return;
      found = name || null;
      loop.now();
    },
    leave: loop.stop,
  };
}
