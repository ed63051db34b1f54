import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { proxyClient, waitUntil } from "@headworks/testkit";
import type { Locator, Page } from "playwright-core";
import { barrierCheck } from "./ui-barriers.ts";
import { eventually, openRow, uiFile } from "./ui-rig.ts";
import type { UiBench } from "./ui-rig.ts";
import { streamSite } from "./ui-streams-site.ts";

const site = streamSite();
const journey = uiFile(site.handler);

/** Opens a stream through the proxy that the test writes; it ends with the test's client. */
async function openLive({ weir, origin }: UiBench, query = ""): Promise<ServerResponse> {
  const before = site.live.length;
  const client = proxyClient(weir.proxyPort, { ca: weir.caPem, timeoutMs: 120_000 });
  client.fetch(`${origin.url}/live${query}`).catch(() => undefined);
  return await waitUntil(() => site.live[before]);
}

const streamRow = (page: Page, text: string | RegExp): Locator =>
  page.getByRole("group", { name: "List of streams" }).getByRole("button", { name: text });
const messages = (page: Page): Locator => page.getByRole("group", { name: "Messages" });
const message = (page: Page, text: string | RegExp): Locator =>
  messages(page).getByRole("button").filter({ hasText: text });

journey("A stream appears while it runs, and each message before the next one is sent", async (bench) => {
  const page = await bench.open("/streams");
  await page.getByText("Nothing streams yet").waitFor();
  const live = await openLive(bench, "?topic=prices");
  await streamRow(page, /^open, 0 messages .*\/live\?topic=prices/u).click();
  await page.getByText("No messages yet").waitFor();
  for (const price of [101, 102, 103]) {
    live.write(`event: price\nid: ${price}\ndata: {"symbol":"ABC","price":${price}}\n\n`);
    await message(page, `"price":${price}`).waitFor();
  }
  await message(page, `"price":102`).click();
  const detail = page.getByRole("region", { name: "Message", exact: true });
  await detail.getByText("id: 102").waitFor();
  await detail.getByText('"symbol": "ABC"').waitFor();
  await detail.getByRole("radio", { name: "Hex" }).click();
  await detail.getByText("7b 22 73 79").waitFor();
  assert.match(page.url(), /[?&]frame=2/u);
  await page.keyboard.press("Escape");
  await detail.waitFor({ state: "detached" });
  live.end();
  await streamRow(page, /closed, 3 messages/u).waitFor();
  await page.getByRole("region", { name: "Stream" }).getByText("closed", { exact: true }).waitFor();
});

journey("Messages are searched, filtered by direction, and walked through by keyboard", async (bench) => {
  await bench.send("/many?count=40");
  const page = await bench.open("/streams");
  await streamRow(page, /\/many/u).click();
  await message(page, "event 12").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("EVENT 3");
  // 3, and 30 to 39.
  await eventually("only what matches is left", async () => (await messages(page).getByRole("button").count()) === 11);
  await page.keyboard.press("Escape");
  await eventually("the search is gone", async () => (await messages(page).getByRole("button").count()) > 11);
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  const detail = page.getByRole("region", { name: "Message", exact: true });
  await detail.getByText("#2", { exact: true }).waitFor();
  await detail.getByText("event 2", { exact: true }).waitFor();
  await page.keyboard.press("End");
  await detail.getByText("#40", { exact: true }).waitFor();
  await page.keyboard.press("k");
  await detail.getByText("#39", { exact: true }).waitFor();
  await page.getByRole("radio", { name: "Sent" }).click();
  await page.getByText("No message like this").waitFor();
});

journey("A chat is put together into thoughts, text, a tool's call and what it cost", async (bench) => {
  await bench.send({ method: "POST", url: "/v1/chat/completions", body: "{}" });
  const page = await bench.open("/streams");
  await streamRow(page, /completions/u).click();
  await message(page, ": processing").waitFor();
  await page.keyboard.press("]");
  const assembled = page.getByRole("region", { name: "Assembled" });
  await assembled.getByText("Let me look that up for you.").waitFor();
  await assembled.getByText("31 in · 17 out · 48 total tokens").waitFor();
  await assembled.getByRole("heading", { name: "weather" }).waitFor();
  await assembled.getByText('"city": "Bern"').waitFor();
  await assembled.getByText("What the model thought").click();
  await assembled.getByText("so a tool has to be asked").waitFor();
  await page.getByRole("tab", { name: "Headers" }).click();
  await page.getByText("text/event-stream; charset=utf-8").waitFor();
});

journey("A hundred thousand messages scroll, and the page holds few of them", async (bench) => {
  await bench.send("/many?count=100000");
  const page = await bench.open("/streams");
  await streamRow(page, /100,000 messages/u).click();
  await message(page, "event 1").first().waitFor();
  await messages(page).focus();
  await page.keyboard.press("End");
  await message(page, "event 100000").waitFor();
  await messages(page).hover();
  await page.mouse.wheel(0, -50_000 * 26);
  await message(page, /event 50\d{3}$|event 49\d{3}/u)
    .first()
    .waitFor();
  assert.ok((await messages(page).getByRole("button").count()) < 120);
});

journey("An entry of the traffic shows the messages of its stream, and leads to it", async (bench) => {
  await bench.send("/lines", "/plain");
  const page = await bench.open("/traffic");
  const plain = await openRow(page, "/plain");
  assert.equal(await plain.getByRole("tab", { name: /^Stream/u }).count(), 0);
  const pane = await openRow(page, "/lines");
  await pane.getByRole("tab", { name: /^Stream 2/u }).click();
  await message(page, '"slow"').click();
  await pane.getByRole("region", { name: "Message", exact: true }).getByText('"level": "warn"').waitFor();
  // The keys of the list of entries stay with it; arrows are for the messages while they have the focus.
  await messages(page).focus();
  await page.keyboard.press("ArrowUp");
  await pane.getByRole("region", { name: "Message", exact: true }).getByText('"level": "info"').waitFor();
  await pane.getByRole("link", { name: "Open in Streams" }).click();
  await page.getByRole("heading", { level: 2, name: /\/lines/u }).waitFor();
});

journey(
  "A phone shows the list or the stream, and Escape leads back; unknown streams and kinds say so",
  async (bench) => {
    await bench.send("/lines");
    const page = await bench.open("/streams", { viewport: { width: 420, height: 800 } });
    await streamRow(page, /\/lines/u).click();
    await message(page, '"started"').waitFor();
    assert.equal(await page.getByRole("heading", { name: "Streams" }).count(), 0);
    await page.keyboard.press("Escape");
    await streamRow(page, /\/lines/u).waitFor();
    await page.getByRole("radio", { name: "WS" }).click();
    await page.getByText("None of this kind").waitFor();
    await page.goto(`${bench.weir.apiUrl}/streams?id=00000000-0000-7000-8000-000000000000`);
    await page.getByText("This stream is gone").waitFor();
  },
);

journey("The screen of streams has no serious barrier, in either theme", async (bench) => {
  await bench.send("/lines", { method: "POST", url: "/v1/chat/completions", body: "{}" });
  const page = await bench.open("/streams", { reducedMotion: "reduce", viewport: { width: 1440, height: 900 } });
  const { found, check } = barrierCheck(page);
  await streamRow(page, /completions/u).click();
  await message(page, ": processing").waitFor();
  await check("messages");
  await message(page, "look").first().click();
  await page.getByRole("region", { name: "Message", exact: true }).getByText("chatcmpl-42").first().waitFor();
  await check("a message", '[aria-label="Message"]');
  await page.getByRole("tab", { name: "Assembled" }).click();
  await page.getByText("Let me look that up").waitFor();
  await check("assembled", '[role="tabpanel"]');
  assert.deepEqual(found, {});
});
