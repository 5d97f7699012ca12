// Pictures of the page for the documentation, after a bit more than two minutes of load, which fill the charts.
import { open } from "./browser.mjs";

const LOAD_MS = 130000;
const PICTURES = [
  ["page-now", "now", 1280, 1000, "light"],
  ["page-keys", "keys", 1280, 620, "dark"],
  ["page-statements", "statements", 1280, 760, "light"],
  ["page-server", "server", 1280, 930, "dark"],
  ["page-phone", "now", 390, 844, "dark"],
];
// These tabs call the API. The tab Statements would show its calls, so they are opened after its picture.
const LATER = [
  ["page-queue", "queues/emails/dead", 1280, 640, "light"],
  ["page-sales", "sales", 1280, 560, "light"],
];

export async function pictures(browser, url, folder) {
  const show = (hash, width, height, colorScheme) =>
    open(browser, `${url}/#${hash}`, { viewport: { width, height }, deviceScaleFactor: 2, colorScheme });
  const pages = [];
  for (const [name, ...view] of PICTURES) pages.push([name, await show(...view)]);
  // The charts fill while the pages are open.
  await pages[0][1].waitForTimeout(LOAD_MS);
  for (const [name, page] of pages) await page.screenshot({ path: `${folder}/${name}.png` });
  for (const [name, ...view] of LATER) {
    const page = await show(...view);
    await page.locator("main tbody td").first().waitFor();
    await page.screenshot({ path: `${folder}/${name}.png` });
  }
}
