// The operations page in a browser. The test in crates/hotrow/tests/page starts it, and changes the world when it asks.
// Arguments: the addresses of three gateways as JSON. With HOTROW_TEST_SHOTS, it writes pictures to that folder instead.
import { createInterface } from "node:readline";
import { faults, launch, open, PATIENCE_MS } from "./browser.mjs";
import { pictures } from "./pictures.mjs";

const WIDTHS = [390, 1280, 2560];
const THEMES = ["light", "dark"];
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const failures = [];
let place = "";

// Asks the test to change the world, and waits until it has.
async function want(change) {
  process.stdout.write(`want ${change}\n`);
  await lines.next();
}

function check(holds, text) {
  if (!holds) failures.push(`${place}: ${text}`);
}

// Waits until a part of the page contains a text. A wait that ends without it is a failure, and the test goes on.
async function shows(page, selector, pattern) {
  try {
    await page.waitForFunction(([selector, source]) => {
      const text = [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility()).map((one) => one.innerText).join("\n");
      return new RegExp(source).test(text);
    }, [selector, pattern.source]);
  } catch {
    const text = await page.locator(selector).first().innerText().catch(() => "nothing");
    failures.push(`${place}: ${selector} does not show ${pattern}, but ${text.slice(0, 300)}`);
  }
}

// Visits tabs in all widths and themes, and checks each view.
async function visit(page, name, tabs) {
  for (const [hash, ...expected] of tabs) {
    place = `${name} #${hash}`;
    await page.evaluate((hash) => { location.hash = hash; }, hash);
    for (const [selector, pattern] of expected) await shows(page, selector, pattern);
    for (const colorScheme of THEMES) {
      await page.emulateMedia({ colorScheme });
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 900 });
        place = `${name} #${hash} at ${width} in ${colorScheme}`;
        failures.push(...(await faults(page)).map((fault) => `${place}: ${fault}`));
      }
    }
  }
}

const main = (pattern) => ["main", pattern];

async function empty(browser, url) {
  const page = await open(browser, url);
  await shows(page, "#status", /Live/);
  await visit(page, "empty", [
    ["now", main(/No units yet/), main(/psql -h 127\.0\.0\.1 -p \d+/), main(/No hot keys/)],
    ["keys", main(/No keys yet/)], ["statements", main(/What is packed/)], ["clients", main(/By application/)],
    ["server", main(/PostgreSQL \d+/), main(/No standby and no replication slot/)],
    ["queues", main(/No queues yet/), main(/create_queue/)], ["sales", main(/No sales yet/)],
    ["counters", main(/No counters yet/)], ["feeds", main(/Whose inbox\?/)],
  ]);
  await page.context().close();
}

async function loaded(browser, url) {
  await want("load");
  const page = await open(browser, url);
  await shows(page, "h1", /units per second/);
  await visit(page, "under load", [
    ["now", main(/Commits saved/), main(/key blocked/), main(/write 0/), main(/Hottest keys/)],
    ["keys", main(/id = \? \([0-9a-f]{6}\)/), main(/Blocked by pid \d+/), main(/pg_terminate_backend/), main(/Values are hidden/)],
    ["statements", main(/packed/), main(/Instead:/), main(/stock = stock - \?/)],
    ["clients", main(/shop/), main(/parked behind a locked row/), main(/pinned: temporary table/)],
    ["server", main(/Connections/), main(/synchronous_commit/), main(/standby_of_the_shop\s+replication slot: no receiver uses it[^]*physical\s+no/), main(/standby\s+standby of this server\s+streaming\s+async/)],
    ["queues", main(/emails/), main(/3 dead letters/), main(/paused/)],
    ["queues/emails/dead", main(/mailbox unavailable/), main(/Redrive dead letters/)],
    ["sales", main(/poster/), main(/all held or sold/)], ["counters", main(/9,007,199,254,740,993/), main(/0 to 100/)],
    ["feeds/2", main(/Inbox of user 2/), main(/hello/)],
  ]);
  place = "under load";
  check(!(await page.content()).includes("secret-"), "a value is shown");
  await headline(page);
  await laneNames(page);
  await stable(page);
  await queueWork(page);
  await searches(page);
  await keyboard(page);
  await hidden(page);
  await theme(page);
  await page.context().close();
}

// Reads need no commit, so they do not count as writes of one.
async function headline(page) {
  place = "headline";
  const text = await page.evaluate(async () => {
    const { headline } = await import("/page/now.js");
    return headline({ units: 440, packed: 100, merged: 0, reads: 300, passed: 40, saved: 80 });
  });
  check(text === "440 units per second, 5.0 writes in each commit", text);
}

// Lanes to nodes and replicas have names of their own, and the lanes with the most units are shown.
async function laneNames(page) {
  place = "lanes";
  const names = await page.evaluate(async () => {
    const { busiest, laneName } = await import("/page/now.js");
    const lane = (lane, queued_units, more) => ({
      database: "shop", kind: "write", pool: 1, lane, queued_units, units_under_way: 1, parked_units: 0, backend_pid: 7, node: null, replica: null, ...more,
    });
    const idle = [1, 2, 3, 4, 5, 6].map((number) => lane(number, 0, {}));
    const away = lane(9, 90, { backend_pid: null });
    const all = [...idle, away, lane(0, 5, { kind: "read", replica: "10.0.0.2:5432" }), lane(0, 7, { node: 3 }), lane(0, 8, {})];
    return busiest(all).map(laneName).join(", ");
  });
  check(names === "shop write 0, shop write 1, shop write 2, shop write 3, shop write 0 on node 3, shop read 0 on replica 10.0.0.2:5432", names);
}

// Numbers that change do not move the tiles.
async function stable(page) {
  place = "tiles";
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.evaluate(() => { location.hash = "now"; });
  await shows(page, "h1", /units per second/);
  const read = () => page.$$eval(".tile", (tiles) => tiles.map((tile) => [tile.getBoundingClientRect().x, tile.getBoundingClientRect().width, tile.getBoundingClientRect().height]).join(" "));
  const before = await read();
  const text = await page.innerText(".tiles");
  await page.waitForFunction((text) => document.querySelector(".tiles").innerText !== text, text);
  check(await read() === before, "the tiles change their size when their numbers change");
}

async function queueWork(page) {
  place = "queue";
  await page.evaluate(() => { location.hash = "queues/emails/dead"; });
  await page.getByRole("button", { name: "Retry", exact: true }).first().click();
  await shows(page, "main", /was brought back/);
  await page.getByRole("button", { name: "Redrive dead letters" }).click();
  await page.getByRole("button", { name: "Really bring all of them back?" }).click();
  await shows(page, "main", /Brought back: 2/);
  await shows(page, "main", /No dead letters/);
  await page.getByRole("button", { name: "Pause" }).click();
  await shows(page, "main h1", /paused/);
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Pause" }).waitFor();
  await page.getByRole("link", { name: "waiting" }).click();
  await page.locator("td.main a").first().click();
  await shows(page, "main", /Payload/);
  await shows(page, "main", /12\.50/);
}

async function searches(page) {
  place = "search";
  const id = "00000000-0000-0000-0000-000000000001";
  await page.evaluate(() => { location.hash = "queues/emails"; });
  await page.getByRole("searchbox", { name: "ID of an order" }).fill(id);
  await page.keyboard.press("Enter");
  await shows(page, "h1", new RegExp(id));
  await shows(page, "main", /Payload/);
  page.errors.length = 0;
  for (const [tab, field, name] of [["sales", "Name of an item", "poster"], ["counters", "Name of a counter", "visits"]]) {
    await page.evaluate((tab) => { location.hash = tab; }, tab);
    await page.getByRole("searchbox", { name: field }).fill(name);
    await page.keyboard.press("Enter");
    await shows(page, "tr.current", new RegExp(name));
  }
  await page.evaluate(() => { location.hash = "queues/none"; });
  await shows(page, "main .problem", /none/);
  page.errors.length = 0; // the browser reports the status 404
}

async function keyboard(page) {
  place = "keyboard";
  await page.reload();
  await shows(page, "#status", /Live/);
  const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
  await page.keyboard.press("Tab");
  check(await focused() === "Skip to content", "the first stop is the link to the content");
  const stops = [];
  for (let stop = 0; stop < 14; stop++) {
    await page.keyboard.press("Tab");
    const text = await focused();
    stops.push(text);
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    check(outline !== "none", `the focus on ${text} is not visible`);
    if (text.startsWith("Keys")) break;
  }
  check(stops.at(-1)?.startsWith("Keys"), `the tabs cannot be reached with the keyboard: ${stops.join(", ")}`);
  await page.keyboard.press("Enter");
  await shows(page, "h1", /Which rows are hot/);
  check(await page.getAttribute('[data-tab="keys"]', "aria-current") === "page", "the tab is not marked");
}

// A page that is not seen closes its stream.
async function hidden(page) {
  place = "hidden";
  const hide = (hide) => page.evaluate((hide) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => hide });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hide);
  const ended = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/live"));
  await hide(true);
  await ended;
  await shows(page, "#status", /Paused/);
  await hide(false);
  await shows(page, "#status", /Live/);
}

async function theme(page) {
  place = "theme";
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: "light" });
  const auto = await ground();
  const button = page.getByRole("button", { name: /^Colours/ });
  await button.click();
  check(await ground() === auto, "light is not light");
  await button.click();
  check(await ground() !== auto, "the button does not choose the dark colours");
  await page.reload();
  check(await ground() !== auto, "the choice is lost");
}

async function tokens(browser, url) {
  place = "tokens";
  const page = await open(browser, url, { expected: [/401/] });
  await page.getByLabel("Token").fill("wrong-token-0123456789");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.getElementById("token").validationMessage !== "");
  await page.getByLabel("Token").fill("reader-token-0123456789");
  await page.keyboard.press("Enter");
  await shows(page, "#status", /Live/);
  await page.evaluate(() => { location.hash = "queues/invoices/dead"; });
  await shows(page, "main", /paused/);
  check(await page.getByRole("button", { name: "Resume" }).count() === 0, "a reader is offered to change something");
  failures.push(...(await faults(page)).map((fault) => `tokens: ${fault}`));
  await page.context().close();
}

async function away(browser, url) {
  const page = await open(browser, `${url}/#queues`, { expected: [/Failed to load resource/, /ERR_/] });
  await shows(page, "main", /No queues yet/);
  await page.evaluate(() => { location.hash = "server"; });
  await shows(page, "main", /Connections/); // a first sample
  await want("server away");
  await shows(page, "#banner", /PostgreSQL has not answered since \d\d:\d\d:\d\d/);
  await visit(page, "server away", [
    ["now", main(/PostgreSQL does not answer/)], ["keys", main(/Which rows/)], ["statements", main(/What is packed/)], ["clients", main(/By application/)],
    ["server", main(/from the last sample/)], ["queues", ["main .problem", /Stale since/]], ["sales", ["main .problem", /Stale since/]],
    ["counters", ["main .problem", /Stale since/]], ["feeds", ["main .problem", /Stale since/]],
  ]);
  place = "server back";
  await want("server back");
  await page.waitForFunction(() => document.getElementById("banner").hidden);
  await page.evaluate(() => { location.hash = "queues"; });
  await shows(page, "main", /No queues yet/);
  place = "gateway away";
  await want("gateway away");
  await shows(page, "#banner", /Stale since \d\d:\d\d:\d\d: the gateway does not answer/);
  await shows(page, "#status", /Stale/);
  failures.push(...(await faults(page)).map((fault) => `gateway away: ${fault}`));
  place = "gateway back";
  await want("gateway back");
  await shows(page, "#status", /Live/);
  await page.waitForFunction(() => document.getElementById("banner").hidden);
  await page.context().close();
}

async function run() {
  const { quiet, busy, locked } = JSON.parse(process.argv[2]);
  const browser = await launch();
  try {
    if (process.env.HOTROW_TEST_SHOTS) {
      await want("load");
      await pictures(browser, busy, process.env.HOTROW_TEST_SHOTS);
    } else {
      await empty(browser, quiet);
      await loaded(browser, busy);
      await tokens(browser, locked);
      await away(browser, quiet);
    }
  } catch (error) {
    failures.push(`${place}: ${error.stack}`);
  } finally {
    await browser.close();
  }
  for (const failure of failures) console.error(failure);
  process.exit(failures.length ? 1 : 0);
}

setTimeout(() => { console.error(`${place}: no end in sight`); process.exit(1); }, process.env.HOTROW_TEST_SHOTS ? 900000 : 12 * PATIENCE_MS).unref();
await run();
