// Pictures of the page for the documentation, after a bit more than two minutes of load, which fill the charts.
import { open } from "./browser.mjs";

const LOAD_MS = 130000;
const PICTURES = [
  ["page-now", "now", 1280, 1000, "light"],
  ["page-keys", "keys", 1280, 620, "dark"],
  ["page-queue", "queues/emails/dead", 1280, 640, "light"],
  ["page-phone", "now", 390, 844, "dark"],
];

export async function pictures(browser, url, folder) {
  const pages = [];
  for (const [name, hash, width, height, colorScheme] of PICTURES) {
    pages.push([name, await open(browser, `${url}/#${hash}`, { viewport: { width, height }, deviceScaleFactor: 2, colorScheme })]);
  }
  // The charts fill while the pages are open.
  await pages[0][1].waitForTimeout(LOAD_MS);
  for (const [name, page] of pages) await page.screenshot({ path: `${folder}/${name}.png` });
}
