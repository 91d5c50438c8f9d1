// Drives a deployment as a React page in a real browser does: node drive.mjs CHROMIUM DIRECTORY URL COMPONENTS. The page is
// bundled, served from an origin of its own and told to talk to URL, or to COMPONENTS, a deployment that brings some; every
// check is one line of output, the first that fails ends the program.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { join } from "node:path";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { Client } from "@langchain/langgraph-sdk";

const [executablePath, directory, api, components] = process.argv.slice(2);
const client = new Client({ apiUrl: api });

const bundle = await build({ entryPoints: [join(import.meta.dirname, "app.jsx")], bundle: true, write: false, jsx: "automatic", minify: true });
const html = '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><div id="root"></div><script src="/app.js"></script>';
const site = createServer((req, res) =>
  req.url === "/app.js"
    ? res.writeHead(200, { "Content-Type": "text/javascript" }).end(bundle.outputFiles[0].text)
    : res.writeHead(200, { "Content-Type": "text/html" }).end(html),
);
await new Promise((done) => site.listen(0, "127.0.0.1", done));

const browser = await chromium.launchPersistentContext(join(directory, "profile"), {
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const faults = [];

async function open(assistant, at = api) {
  const page = await browser.newPage();
  page.on("pageerror", (error) => faults.push(String(error)));
  await page.goto(`http://127.0.0.1:${site.address().port}/?api=${encodeURIComponent(at)}&assistant=${assistant}`);
  await page.waitForSelector("h1");
  return page;
}
const settled = (page, finished) =>
  page.waitForFunction((n) => window.page.finished >= n && !window.page.stream.isLoading, finished, { timeout: 60_000 });
const threadOf = (page) => new URL(page.url()).hash.slice(1);
const types = (page) => page.$$eval("li", (items) => items.map((item) => item.dataset.type));
const last = (page) => page.textContent("li:last-child .content");
async function say(page, text) {
  await page.fill("#text", text);
  await page.click("#send");
}
const submit = (page, values, options) => page.evaluate(([v, o]) => void window.page.stream.submit(v, o), [values, options]);

const checks = {
  async "an answer grows word by word"() {
    const page = await open("agent");
    await say(page, "6 times 7");
    await settled(page, 1);
    assert.deepEqual(await types(page), ["human", "ai", "tool", "ai"]);
    assert.equal(await last(page), "The answer is 42.");
    const texts = await page.evaluate(() => window.page.texts);
    assert.ok(texts.length > 1, `one text only: ${texts}`);
    for (const text of texts) assert.ok("The answer is 42.".startsWith(text), text);
    await page.screenshot({ path: join(directory, "chat.png") });
  },
  async "a conversation goes on and is there after a reload"() {
    const page = await open("relay");
    await say(page, "one");
    await settled(page, 1);
    await say(page, "two");
    await settled(page, 2);
    await page.reload();
    await page.waitForFunction(() => document.querySelectorAll("li").length === 4);
    assert.equal(await last(page), "relay: two");
  },
  async "a person answers an interrupt"() {
    const page = await open("approve");
    await submit(page, {});
    await page.waitForFunction(() => document.getElementById("interrupt").textContent !== "");
    assert.deepEqual(JSON.parse(await page.textContent("#interrupt")), { question: "ok?" });
    await settled(page, 1);
    await submit(page, undefined, { command: { resume: "yes" } });
    await settled(page, 2);
    assert.deepEqual(JSON.parse(await page.textContent("#values")), { x: 1, note: "yes" });
    assert.equal(await page.textContent("#interrupt"), "");
  },
  async "an edited message makes a branch, and both can be seen"() {
    const page = await open("agent");
    await say(page, "6 times 7");
    await settled(page, 1);
    await page.click("li[data-type=human] .edit");
    await settled(page, 2);
    assert.equal(await last(page), "The answer is 15.");
    assert.deepEqual(await page.$$eval("li[data-type=human] .branch", (all) => all.map((b) => b.textContent)), ["other", "this"]);
    await page.click("li[data-type=human] .branch:text('other')");
    await page.waitForFunction(() => document.querySelector("li:last-child .content").textContent === "The answer is 42.");
  },
  async "a page that is reloaded joins the running stream again"() {
    const page = await open("count");
    await submit(page, { to: 40, pause_ms: 50 }, { streamResumable: true });
    await page.waitForFunction(() => window.page.custom.length >= 5);
    await page.reload();
    await settled(page, 1);
    const told = await page.evaluate(() => window.page.custom.map((c) => c.n));
    assert.deepEqual(told, Array.from({ length: 40 }, (_, i) => i + 1));
    assert.equal(JSON.parse(await page.textContent("#values")).counted, 40);
  },
  async "stop ends the run on the server"() {
    const page = await open("count");
    await submit(page, { to: 100_000, pause_ms: 20 });
    await page.waitForFunction(() => window.page.custom.length >= 3);
    await page.click("#stop");
    await page.waitForFunction(() => !window.page.stream.isLoading);
    const [run] = await client.runs.list(threadOf(page));
    await client.runs.join(threadOf(page), run.run_id);
    assert.equal((await client.runs.get(threadOf(page), run.run_id)).status, "interrupted");
  },
  async "a page that is closed ends its run, too"() {
    const page = await open("count");
    await submit(page, { to: 100_000, pause_ms: 20 }, { onDisconnect: "cancel", streamResumable: false });
    await page.waitForFunction(() => window.page.custom.length >= 3);
    const thread = threadOf(page);
    await page.close();
    const [run] = await client.runs.list(thread);
    await client.runs.join(thread, run.run_id);
    assert.equal((await client.runs.get(thread, run.run_id)).status, "interrupted");
  },
  async "a second message interrupts the first"() {
    const page = await open("relay");
    const slow = (text) => ({ messages: [{ type: "human", content: text }], wait_ms: text === "slow" ? 60_000 : 0 });
    await submit(page, slow("slow"));
    await page.waitForFunction(() => location.hash && window.page.stream.isLoading);
    await client.threads.get(threadOf(page));
    await submit(page, slow("fast"), { multitaskStrategy: "interrupt" });
    await page.waitForFunction(() => document.querySelector("li:last-child .content")?.textContent === "relay: fast");
    const statuses = (await client.runs.list(threadOf(page))).map((run) => run.status);
    assert.deepEqual(statuses, ["success", "interrupted"]);
  },
  async "what a subgraph writes arrives"() {
    const page = await open("family");
    await submit(page, { x: 1 }, { streamSubgraphs: true });
    await settled(page, 1);
    assert.deepEqual(await page.evaluate(() => window.page.custom), [{ from: "inner" }]);
    assert.equal(JSON.parse(await page.textContent("#values")).x, 12);
  },
  async "a component of the graph is shown, and lives"() {
    const page = await open("weather", components);
    const loaded = [];
    page.on("response", (response) => loaded.push(response));
    await say(page, "Oslo");
    await settled(page, 1);
    const weather = page.locator(".component .weather"); // in a shadow root
    await weather.waitFor();
    assert.equal(await weather.textContent(), "From the page: Oslo is sunny, seen 0");
    await weather.click();
    assert.equal(await weather.textContent(), "From the page: Oslo is sunny, seen 1");
    assert.equal(await weather.evaluate((button) => getComputedStyle(button).color), "rgb(1, 2, 3)");
    const files = loaded.filter((r) => r.request().method() === "GET" && r.url().includes("/ui/weather/"));
    assert.deepEqual(files.map((r) => new URL(r.url()).pathname.split("/").at(-1)).sort(), ["entrypoint.css", "entrypoint.js"]);
    for (const file of files) assert.match((await file.allHeaders())["cache-control"], /immutable/);
    await page.reload(); // the message is in the thread's values
    await weather.waitFor();
    assert.equal(await weather.textContent(), "From the page: Oslo is sunny, seen 0");
  },
  async "a failure is shown"() {
    const page = await open("fails");
    await submit(page, { x: 1 });
    await page.waitForFunction(() => document.getElementById("error").textContent.includes("boom"));
  },
};

for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log("ok", name);
}
assert.deepEqual(faults, [], "errors on the page");
await browser.close();
site.close();
