// Drives one Chromium for the browser tests: reads an order a line from stdin, as JSON, and writes one answer a line
// to stdout, {"value": …} or {"error": "…"}. The first answer, unasked, is the version of the browser. It asserts
// nothing: that is done in Go, by internal/report. It ends, and the browser with it, when stdin does.
//
//   node driver.mjs FOLDER CHROMIUM     FOLDER is the one that setup.sh filled
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [folder, executablePath] = process.argv.slice(2);
const require = createRequire(join(folder, 'package.json'));
const { chromium } = require('playwright-core');
const rules = require('axe-core').source;
const patience = 20_000; // milliseconds, on a busy machine; what does not come shall fail before the tests' time is up

let browser, context, page, said;

// open gives a file a page of its own and waits until its scripts have run. From before the first byte on, whatever the
// page says or asks for is kept. All pages are of one context and one process, which compiles the charting library once;
// the page before is closed later than the next one is made, so that the process stays.
async function open({ file, text, width = 1100, height = 900 }) {
  const before = page;
  said = [];
  const heard = said;
  page = await context.newPage();
  await before?.close();
  await page.setViewportSize({ width, height });
  page.on('console', (m) => heard.push({ kind: 'console', text: `${m.type()}: ${m.text()}` }));
  page.on('pageerror', (e) => heard.push({ kind: 'exception', text: String(e) }));
  page.on('request', (r) => heard.push({ kind: 'request', text: r.url() }));
  page.on('websocket', (s) => heard.push({ kind: 'request', text: s.url() }));
  page.on('popup', (p) => heard.push({ kind: 'window', text: p.url() }));
  page.on('crash', () => heard.push({ kind: 'crash', text: 'the page crashed' }));
  page.on('dialog', (d) => { heard.push({ kind: 'dialog', text: d.message() }); d.dismiss().catch(() => {}); });
  if (text) await page.clock.install();
  await page.goto(text ?? pathToFileURL(file).href, { waitUntil: 'load' });
}

// save presses the first element that the selector fits, keeps the file that this hands out, and answers with its name.
async function save({ text, file }) {
  const [download] = await Promise.all([page.waitForEvent('download'), page.locator(text).first().click()]);
  await download.saveAs(file);
  return download.suggestedFilename();
}

// audit applies a rule of axe-core, or all, to the page as it is and answers with a line for each element that breaks one.
async function audit({ text }) {
  await page.evaluate(rules);
  const { violations } = await page.evaluate((rule) =>
    axe.run({ resultTypes: ['violations'], ...(rule && { runOnly: { type: 'rule', values: [rule] } }) }), text);
  return violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.html.slice(0, 200)}: ${n.failureSummary}`));
}

const orders = {
  audit,
  open,
  visit: open, // text is an address; the clock of the page stands until it is moved
  pass: async ({ times }) => { await page.clock.runFor(times * 1000); await page.waitForTimeout(200); },
  loaded: () => page.waitForLoadState('load'),
  save,
  // An expression; a promise is waited for. A page that reloads itself meanwhile is asked again once it is there.
  eval: ({ text }) => page.evaluate(text).catch(async (error) => {
    if (!/context was destroyed/.test(error.message)) throw error;
    await page.waitForLoadState();
    return page.evaluate(text);
  }),
  click: ({ x, y }) => page.mouse.click(x, y),
  press: async ({ text, times = 1 }) => { for (let i = 0; i < times; i++) await page.keyboard.press(text); },
  size: ({ x, y }) => page.setViewportSize({ width: x, height: y }),
  scheme: ({ text }) => page.emulateMedia({ colorScheme: text }),
  print: async ({ file }) => { await page.pdf({ path: file, printBackground: true }); },
  said: () => said,
};

const answer = (object) => process.stdout.write(`${JSON.stringify(object)}\n`);

async function obey(line) {
  try {
    const { do: what, ...rest } = JSON.parse(line);
    if (!Object.hasOwn(orders, what)) throw new Error(`no order is called ${what}`);
    answer({ value: (await orders[what](rest)) ?? null });
  } catch (e) {
    answer({ error: String(e?.message ?? e) });
  }
}

try {
  browser = await chromium.launch({
    executablePath,
    timeout: 3 * patience,
    // No name resolves but the loopback address, on which a test may serve: what asks the network anyway gets nothing, and is heard.
    args: ['--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1', '--disable-gpu', '--disable-quic', '--no-first-run', '--process-per-site'],
  });
  context = await browser.newContext({ colorScheme: 'light' });
  context.setDefaultTimeout(patience);
  answer({ value: browser.version() });
} catch (e) {
  answer({ error: String(e?.message ?? e) });
  process.exit(1);
}
for await (const line of createInterface({ input: process.stdin })) await obey(line);
await browser.close();
