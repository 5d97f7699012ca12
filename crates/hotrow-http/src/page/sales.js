// The tab Sales: how much of each item is left, held and sold, and whether its sale is open.
import { chip, el, empty, setText } from "/page/dom.js";
import { read, segment } from "/page/api.js";
import { integer, show } from "/page/exact.js";
import { clock, duration, percent, relative } from "/page/format.js";
import { pages, problemBox, refreshing, search } from "/page/lookup.js";
import { emphasis, lines, meter, table } from "/page/table.js";

const PAGE = 50;
const number = (value) => Number(show(value));
const stock = (sale) => number(sale.remaining) + number(sale.held) + number(sale.sold);

function phase(sale) {
  const [start, end] = [sale.starts_at, sale.ends_at].map((time) => (time ? Date.parse(time) : null));
  if (start !== null && start > Date.now()) return ["not open yet", "info"];
  if (end !== null && end <= Date.now()) return ["closed", ""];
  return number(sale.remaining) === 0 ? [number(sale.held) ? "all held or sold" : "sold out", "warn"] : ["open", "good"];
}

function times(sale) {
  const parts = [];
  if (sale.starts_at && Date.parse(sale.starts_at) > Date.now()) parts.push(`opens ${relative(sale.starts_at)}, ${clock(sale.starts_at)}`);
  if (sale.ends_at) parts.push(`${Date.parse(sale.ends_at) > Date.now() ? "closes" : "closed"} ${relative(sale.ends_at)}`);
  if (sale.per_buyer !== null) parts.push(`${integer(sale.per_buyer)} per buyer`);
  parts.push(sale.hold === null ? "holds do not expire" : `holds expire after ${duration(number(sale.hold))}`);
  return parts.join(", ");
}

const COLUMNS = [
  { label: "Item", main: true, cell: (cell, sale) => lines(cell, [{ text: sale.item, as: "strong" }, times(sale)]) },
  {
    label: "Sale", tight: true, wide: true,
    cell: (cell, sale) => {
      const [text, look] = phase(sale);
      if (cell.textContent !== text) cell.replaceChildren(chip(text, look));
    },
  },
  { label: "Left", num: true, cell: (cell, sale) => emphasis(cell, integer(sale.remaining), false, number(sale.remaining) === 0) },
  { label: "Held", num: true, cell: (cell, sale) => emphasis(cell, integer(sale.held), number(sale.held) === 0) },
  { label: "Sold", num: true, cell: (cell, sale) => emphasis(cell, integer(sale.sold), number(sale.sold) === 0) },
  { label: "Taken", num: true, title: "Held and sold, as a share of the stock", cell: (cell, sale) => {
    const share = stock(sale) ? 1 - number(sale.remaining) / stock(sale) : 0;
    meter(cell, percent(share), share, share === 1 ? "orange" : "green");
  } },
];

export function mount(root) {
  const problem = problemBox();
  const about = el("p");
  const sales = table("Sales", COLUMNS, { key: (sale) => sale.item, look: (sale) => (sale.found ? "current" : "") });
  const none = empty("No sales yet", "Create one in SQL:", "select hotrow.create_sale('phone', 1000, per_buyer => 2)");
  let wanted = PAGE, found = null;
  const more = el("button", { type: "button", onclick: () => { wanted += PAGE; loop.now(); } }, "More sales");
  const foot = el("p", { class: "foot", hidden: true }, more);
  root.append(
    el("div", { class: "head" }, el("h1", {}, "Sales"), search("Name of an item", (item) => { location.hash = `#sales/${segment(item)}`; }), about),
    problem, el("section", { class: "panel flush", "aria-label": "Sales" }, sales.node, none, foot));
  [sales.node.hidden, none.hidden] = [true, true];
  const loop = refreshing(problem, async () => {
    const result = await pages(wanted, PAGE, async (last, max) => (await read("/v1/sales", { after: last?.item ?? "", max })).sales);
    const all = result.all.filter((sale) => sale.item !== found);
    if (found !== null) all.unshift({ ...await read(`/v1/sales/${segment(found)}`), found: true });
    sales.update(all);
    sales.node.hidden = all.length === 0;
    none.hidden = all.length > 0;
    foot.hidden = !result.more;
    const held = all.reduce((sum, sale) => sum + number(sale.held), 0);
    setText(about, all.length ? `${all.length} items${result.more ? " shown" : ""}. ${held.toLocaleString("en-US")} pieces are held: they come back if buyers do not confirm in time.` : "");
  });
  return {
    route([item]) {
      if (found === (item || null)) return;
      found = item || null;
      loop.now();
    },
    leave: loop.stop,
  };
}
