// The stream /live: reads its events, pauses while the page is hidden, and connects again after a loss. fetch() instead of
// EventSource, because the request needs a header with the token.
import { headers, unauthorized } from "/page/api.js";

// Without an event for this time the stream counts as broken. The server sends one each second.
const SILENCE_MS = 6000;
const BACK_OFF_MS = [500, 1000, 2000, 4000, 8000, 15000];

// Calls `listener.event(name, data)` for each event and `listener.status(state, since)` for each change:
// connecting, live, paused, stale or locked.
export function follow(listener) {
  let abort = null, failures = 0, timer = 0, lost = null, locked = false;

  function later(task, time) {
    clearTimeout(timer);
    timer = setTimeout(task, time);
  }

  function close() {
    clearTimeout(timer);
    abort?.abort();
    abort = null;
  }

  async function open() {
    close();
    if (document.hidden) return listener.status("paused", null);
    if (lost === null) listener.status("connecting", null);
    const own = new AbortController();
    abort = own;
    later(() => own.abort(), SILENCE_MS);
    try {
      const reply = await fetch("/live", { headers: headers(), cache: "no-store", signal: own.signal });
      if (reply.status === 401) {
        locked = true;
        close();
        listener.status("locked", null);
        return unauthorized();
      }
      if (!reply.ok) throw new Error(`status ${reply.status}`);
      await events(reply.body, (name, data) => {
        later(() => own.abort(), SILENCE_MS);
        [failures, lost] = [0, null];
        listener.event(name, data);
        if (name === "state") listener.status("live", null);
      });
      throw new Error("the stream has ended");
    } catch {
      if (abort !== own) return; // closed on purpose
      lost ??= new Date();
      listener.status("stale", lost);
      const wait = BACK_OFF_MS[Math.min(failures++, BACK_OFF_MS.length - 1)];
      later(open, wait * (0.75 + Math.random() / 2));
    }
  }

  document.addEventListener("visibilitychange", () => {
    if (locked) return;
    if (document.hidden) {
      close();
      listener.status("paused", null);
    } else {
      open();
    }
  });
  open();
  return { restart() { locked = false; lost = null; open(); } };
}

// Splits the body into events: lines "event: NAME" and "data: JSON", with an empty line at the end.
async function events(body, each) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const line = (name) => part.split("\n").find((line) => line.startsWith(name))?.slice(name.length);
      each(line("event: "), JSON.parse(line("data: ")));
    }
  }
}
