// The tab Feeds: posts that have not reached all followers, and the inbox of one user (#feeds/USER).
import { chip, el, empty, setText, tile } from "/page/dom.js";
import { read, segment } from "/page/api.js";
import { integer, show } from "/page/exact.js";
import { clock, count, duration, relative } from "/page/format.js";
import { problemBox, refreshing, search } from "/page/lookup.js";
import { table } from "/page/table.js";

const PAGE = 50;
const MOST = 10000;
// A user waits longer than the maintenance's period and a little more: the delivery is behind.
const LATE_SECONDS = 60;

const MESSAGES = [
  { label: "Message", main: true, text: (one) => one.content ?? "(the post is gone)" },
  { label: "From", num: true, text: (one) => show(one.from_user) },
  { label: "Entry", num: true, text: (one) => integer(one.entry_id) },
  { label: "Sent", num: true, cell: (cell, one) => { setText(cell, relative(one.created_at)); cell.title = one.created_at ? clock(one.created_at) : ""; } },
];

const atMost = (value) => (Number(show(value)) >= MOST ? `${count(MOST)} or more` : integer(value));

function makeInbox() {
  const title = el("h2");
  const unread = chip("", "info");
  const messages = table("Unread messages", MESSAGES, { key: (one) => show(one.entry_id) });
  const none = empty("No unread messages", "The inbox of this user has nothing that was not consumed.");
  const node = el("section", { class: "panel flush", "aria-label": "Inbox" }, el("header", {}, title, unread), messages.node, none);
  node.hidden = true;
  const update = async (user) => {
    const path = `/v1/users/${segment(user)}/inbox`;
    const [{ unread: number }, { messages: list }] = await Promise.all([read(`${path}/unread`), read(`${path}/next`, { max: PAGE })]);
    setText(title, `Inbox of user ${user}`);
    setText(unread, `${integer(number)} unread`);
    messages.update(list);
    messages.node.hidden = list.length === 0;
    none.hidden = list.length > 0;
    node.hidden = false;
  };
  return { node, update };
}

export function mount(root) {
  const problem = problemBox();
  const tiles = [tile("Posts queued"), tile("Oldest turn"), tile("Followers left")];
  const inbox = makeInbox();
  const hint = el("section", { class: "panel" }, empty("Whose inbox?", "Enter the number of a user to see the messages that the user has not read. Reading here changes nothing."));
  let user = null;
  root.append(
    el("div", { class: "head" }, el("h1", {}, "Feeds"), search("Number of a user", (text) => { location.hash = `#feeds/${segment(text)}`; })),
    problem, el("div", { class: "tiles small three" }, ...tiles.map((one) => one.node)), hint, inbox.node);
  const loop = refreshing(problem, async () => {
    const stats = await read("/v1/feeds");
    const late = stats.waiting_since ? (Date.now() - Date.parse(stats.waiting_since)) / 1000 : null;
    tiles[0].set(atMost(stats.posts_queued), "", "have not reached all followers");
    tiles[1].set(late === null ? "–" : duration(late), late === null ? "" : "ago", late === null ? "no author waits" : "run fan_out from more workers", late > LATE_SECONDS ? "warn" : "");
    tiles[2].set(atMost(stats.followers_left), "", "their inboxes were locked");
    hint.hidden = user !== null;
    if (user === null) inbox.node.hidden = true;
    else await inbox.update(user);
  });
  return {
    route([name]) {
      if (user === (name || null)) return;
      user = name || null;
      loop.now();
    },
    leave: loop.stop,
  };
}
