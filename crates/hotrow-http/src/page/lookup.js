// What the pages of queues, sales, counters and feeds share: lists that refresh while they are seen, searches, and actions.
import { el, setText } from "/page/dom.js";
import { clock } from "/page/format.js";

const REFRESH_MS = 3000;

const sentence = (text) => `${text[0]?.toUpperCase() ?? ""}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

// Repeats a task while the page is seen. A failure is shown in `box` with the time since which the numbers are old.
export function refreshing(box, task) {
  let timer = 0, stopped = false, since = null, running = false;
  const failed = (error) => {
    since ??= new Date();
    const isAway = error.status === 0 || (error.status >= 500 && error.kind !== "pack-missing");
    setText(box, `${isAway ? `Stale since ${clock(since)}. ` : ""}${sentence(error.message)} ${error.hint}`);
    box.hidden = error.status === 401;
  };
  const run = async () => {
    clearTimeout(timer);
    if (!stopped && !document.hidden && !running) {
      running = true;
      try {
        await task();
        since = null;
        box.hidden = true;
      } catch (error) {
        if (error.status === undefined) throw error;
        failed(error);
      } finally {
        running = false;
      }
    }
    if (!stopped) timer = setTimeout(run, REFRESH_MS);
  };
  queueMicrotask(run);
  return { now: run, stop() { stopped = true; clearTimeout(timer); } };
}

// A box for the problem of the list below it.
export const problemBox = () => el("p", { class: "problem", role: "alert", hidden: true });

// A line for the reports of actions.
export const reportBox = () => el("p", { role: "status", hidden: true });

function report(box, look, text) {
  box.className = look;
  setText(box, text);
  box.hidden = false;
  clearTimeout(box.timer);
  if (look === "done") box.timer = setTimeout(() => { box.hidden = true; }, 8000);
}

// A button that changes something. It asks once more if `ask` is set. `run` returns what was done, for the box.
export function action(label, { ask, run, box, danger }) {
  let armed = 0;
  const button = el("button", { type: "button", class: danger ? "danger" : undefined }, label);
  const disarm = () => {
    clearTimeout(armed);
    armed = 0;
    setText(button, label);
  };
  button.addEventListener("blur", disarm);
  button.addEventListener("click", async () => {
    if (ask && !armed) {
      setText(button, ask);
      armed = setTimeout(disarm, 5000);
      return;
    }
    disarm();
    button.disabled = true;
    try {
      report(box, "done", await run());
    } catch (error) {
      if (error.status === undefined) throw error;
      report(box, "problem", `${sentence(error.message)} ${error.hint}`);
    }
    button.disabled = false;
  });
  return button;
}

// A search field with a label. `find` gets the text.
export function search(label, find) {
  const input = el("input", { type: "search", "aria-label": label, placeholder: label, autocomplete: "off", spellcheck: "false" });
  const form = el("form", { class: "search", role: "search" }, input, el("button", {}, "Find"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (text) find(text);
  });
  return form;
}

// Reads pages of a list until it has as many as the reader wants. Returns the entries, and whether there are more.
export async function pages(wanted, size, readPage) {
  const all = [];
  while (all.length < wanted) {
    const page = await readPage(all.at(-1), size);
    all.push(...page);
    if (page.length < size) return { all, more: false };
  }
  return { all, more: true };
}
