// The browser, and what must be true of every view of the page: its names, its width, its contrast, no errors.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";

// Installed by prepare.sh.
const require = createRequire(new URL("../../target/conformance/page/", import.meta.url));
const { chromium } = require("playwright-core");

const PLACES = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const OPTIONS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];
// Time limit of a wait. Only a fault makes a wait take so long.
export const PATIENCE_MS = 20000;

export function launch() {
  const executablePath = PLACES.find((place) => place && existsSync(place));
  if (!executablePath) throw new Error("no Chromium found: install it (Debian: chromium), or set CHROMIUM to its path");
  return chromium.launch({ executablePath, args: OPTIONS });
}

// A page that collects its errors. `expected` are patterns of errors that the situation causes.
export async function open(browser, url, { expected = [], ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const errors = [];
  const note = (text) => { if (!expected.some((pattern) => pattern.test(text))) errors.push(text); };
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) note(`console: ${message.text()}`); });
  page.on("pageerror", (error) => note(`exception: ${error.message}`));
  page.on("request", (request) => { if (new URL(request.url()).origin !== new URL(url).origin) note(`foreign request: ${request.url()}`); });
  page.errors = errors;
  await page.goto(url);
  return page;
}

const NAMED = new Set(["link", "button", "textbox", "searchbox", "image", "img", "table", "navigation", "main", "form", "group", "region"]);

// The elements without a name, as an assistive program sees them.
async function nameless(page) {
  const session = await page.context().newCDPSession(page);
  const { nodes } = await session.send("Accessibility.getFullAXTree");
  await session.detach();
  const wanted = nodes.filter((node) => !node.ignored && NAMED.has(node.role?.value));
  return wanted.filter((node) => !node.name?.value?.trim()).map((node) => node.role.value);
}

// Texts whose contrast to their ground is below the minimum of WCAG 2.2 AA.
function faint() {
  const parse = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => {
    const part = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = parse(getComputedStyle(one).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const box = element.getBoundingClientRect();
    if (!own || box.width < 2 || box.height < 2 || element.matches(":disabled, .sr, noscript")) continue;
    const style = getComputedStyle(element);
    const [one, other] = [light(parse(style.color)), light(ground(element))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    if (ratio < least) found.push(`${element.tagName}.${element.className} "${element.textContent.trim().slice(0, 30)}" ${ratio.toFixed(2)}`);
  }
  return found.slice(0, 5);
}

// Checks the view that the page shows now. Returns its faults.
export async function faults(page) {
  const found = page.errors.splice(0);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (wide > 0) found.push(`the page is ${wide} pixels too wide`);
  for (const role of await nameless(page)) found.push(`a ${role} has no name`);
  for (const text of await page.evaluate(faint)) found.push(`too little contrast: ${text}`);
  return found;
}
