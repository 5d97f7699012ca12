// The frame of the operations page: tabs, the stream, the token, the theme. Each tab is a module of its own.
import { el, setText, svg } from "/page/dom.js";
import { onUnauthorized, setToken } from "/page/api.js";
import { clock, duration, rate } from "/page/format.js";
import { follow } from "/page/live.js";
import * as now from "/page/now.js";
import * as keys from "/page/keys.js";
import * as statements from "/page/statements.js";
import * as clients from "/page/clients.js";
import * as server from "/page/server.js";
import * as queues from "/page/queues.js";
import * as sales from "/page/sales.js";
import * as counters from "/page/counters.js";
import * as feeds from "/page/feeds.js";

const TABS = { now, keys, statements, clients, server, queues, sales, counters, feeds };
const NAMES = { now: "Now", keys: "Keys", statements: "Statements", clients: "Clients", server: "Server", queues: "Queues", sales: "Sales", counters: "Counters", feeds: "Feeds" };
const HISTORY = 900;

const find = (id) => document.getElementById(id);
// All that the tabs show. `points` are the last 15 minutes; `now` is the time of the last event.
const model = { about: null, state: null, points: [], now: 0, stale: null };
let shown = null; // { name, view }

// The tab and the rest of the address: #queues/orders/dead is ["queues", "orders", "dead"].
function route() {
  const parts = location.hash.slice(1).split("/").map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  return Object.hasOwn(TABS, parts[0]) ? parts : ["now"];
}

function showTab() {
  const [name, ...rest] = route();
  if (shown?.name !== name) {
    shown?.view.leave?.();
    const main = find("main");
    main.replaceChildren();
    main.setAttribute("aria-label", NAMES[name]);
    shown = { name, view: TABS[name].mount(main, model) };
    window.scrollTo(0, 0);
  }
  for (const link of find("tabs").querySelectorAll("a")) {
    if (link.dataset.tab === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  revealTab();
  shown.view.route?.(rest);
  shown.view.update?.(model);
  title();
}

// Scrolls the tabs of a narrow screen to the current one.
const revealTab = () => find("tabs").querySelector("[aria-current]").scrollIntoView({ block: "nearest", inline: "center" });

function makeTabs() {
  const nav = find("tabs");
  for (const [name, label] of Object.entries(NAMES)) {
    if (name === "queues") nav.append(el("span", { class: "break", "aria-hidden": "true" }));
    nav.append(el("a", { href: `#${name}`, "data-tab": name }, label, el("span", { class: "flag", hidden: true })));
  }
}

// A number on a tab that asks for attention.
function flag(name, number, meaning) {
  const link = find("tabs").querySelector(`[data-tab="${name}"]`);
  const mark = link.querySelector(".flag");
  mark.hidden = !number;
  setText(mark, number ? String(number) : "");
  if (number) link.setAttribute("aria-label", `${NAMES[name]}, ${number} ${meaning}`);
  else link.removeAttribute("aria-label");
}

function title() {
  const units = model.state ? `${rate(model.state.units)}/s · ` : "";
  document.title = `${units}${NAMES[route()[0]]} · Hotrow`;
}

function onEvent(name, data) {
  if (name === "about") {
    model.about = data;
    setText(find("where"), `${data.database} on ${data.server} · version ${data.version}`);
  } else if (name === "history") {
    model.points = data;
  } else {
    model.state = data;
    model.now = data.at;
    if (model.points.at(-1)?.at !== data.at) model.points.push(data);
    model.points.splice(0, Math.max(0, model.points.length - HISTORY));
    model.listeners.forEach((listener) => listener(data));
    flag("keys", data.keys.filter((key) => key.blockers.length).length, "blocked");
    flag("queues", data.gauges.dead_letters ?? 0, "dead letters");
    title();
  }
  if (name !== "history") shown?.view.update?.(model);
  banner();
}

const STATUS = { connecting: "Connecting", live: "Live", paused: "Paused", stale: "Stale", locked: "Locked" };

function onStatus(state, since) {
  model.stale = since;
  find("status").dataset.state = state;
  setText(find("status").lastElementChild, STATUS[state]);
  find("login").hidden = state !== "locked";
  find("main").hidden = state === "locked";
  banner();
}

function banner() {
  const box = find("banner");
  const problem = model.state?.server_problem;
  let text = "";
  if (model.stale) {
    text = `Stale since ${clock(model.stale)}: the gateway does not answer. The page tries to connect again.`;
  } else if (problem) {
    const since = new Date(problem.since * 1000);
    text = `PostgreSQL has not answered since ${clock(since)} (${duration((Date.now() - since) / 1000)}): ${problem.text}`;
  }
  if (box.textContent !== text) box.textContent = text;
  box.hidden = text === "";
}

const THEMES = ["auto", "light", "dark"];
const ICONS = {
  auto: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Zm0 2v14a7 7 0 0 1 0-14Z",
  light: "M12 7a5 5 0 1 0 0 10 5 5 0 0 0 0-10ZM11 1h2v3h-2zM11 20h2v3h-2zM1 11h3v2H1zM20 11h3v2h-3zM4.2 5.6l1.4-1.4 2.1 2.1-1.4 1.4zM16.3 17.7l1.4-1.4 2.1 2.1-1.4 1.4zM4.2 18.4l2.1-2.1 1.4 1.4-2.1 2.1zM16.3 6.3l2.1-2.1 1.4 1.4-2.1 2.1z",
  dark: "M20.5 14.5A9 9 0 0 1 9.5 3.5a9 9 0 1 0 11 11Z",
};

function makeTheme() {
  const button = find("theme");
  const stored = localStorage.getItem("hotrow-theme");
  let theme = THEMES.includes(stored) ? stored : "auto";
  const apply = () => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.setAttribute("aria-label", `Colours: ${theme}. Change`);
    button.title = `Colours: ${theme}`;
    button.replaceChildren(svg("svg", { viewBox: "0 0 24 24", fill: "currentColor", "aria-hidden": "true" }, svg("path", { d: ICONS[theme] })));
  };
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    localStorage.setItem("hotrow-theme", theme);
    apply();
  });
  apply();
}

model.listeners = [now.remember]; // see every state, also while another tab is shown
makeTheme();
makeTabs();
onUnauthorized((wrong) => {
  onStatus("locked", null);
  const field = find("token");
  field.setCustomValidity(wrong ? "This token is not valid." : "");
  if (wrong) field.reportValidity();
  field.focus();
});
window.addEventListener("hashchange", showTab);
// A phone also resizes its window when its address bar hides, which must not move the tabs.
matchMedia("(max-width: 40rem)").addEventListener("change", revealTab);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  find("main").focus();
});
showTab();
const stream = follow({ event: onEvent, status: onStatus });
find("token").addEventListener("input", () => find("token").setCustomValidity(""));
find("login").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(find("token").value.trim());
  find("token").value = "";
  stream.restart();
});
setInterval(banner, 1000);
