import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import type { AddressInfo } from "node:net";
import { credentials, Metadata } from "@grpc/grpc-js";
import type { GrpcFrame, GrpcSchema, GrpcStream, WsRule } from "@headworks/capture-contract";
import { proxyClient, waitUntil } from "@headworks/testkit";
import type { Locator, Page } from "playwright-core";
import { WebSocket, WebSocketServer } from "ws";
import { shopClient, SHOP_TEXT, startShop } from "./grpc-peers.ts";
import type { Order } from "./grpc-peers.ts";
import { barrierCheck } from "./ui-barriers.ts";
import { callApi, eventually, openRow, uiFile, visit } from "./ui-rig.ts";
import type { UiBench } from "./ui-rig.ts";
import { streamSite } from "./ui-streams-site.ts";

const site = streamSite();
const journey = uiFile(site.handler);

/** Opens a stream through the proxy that the test writes to; it ends with the test's client. */
async function openLive({ weir, origin }: UiBench, query = ""): Promise<ServerResponse> {
  const before = site.live.length;
  const client = proxyClient(weir.proxyPort, { ca: weir.caPem, timeoutMs: 120_000 });
  client.fetch(`${origin.url}/live${query}`).catch(() => undefined);
  return await waitUntil(() => site.live[before]);
}

const streamRow = (page: Page, text: string | RegExp): Locator =>
  page.getByRole("group", { name: "Streams" }).getByRole("button", { name: text });
const messages = (page: Page): Locator => page.getByRole("group", { name: "Messages" });
const message = (page: Page, text: string | RegExp): Locator =>
  messages(page).getByRole("button").filter({ hasText: text });

journey("A stream appears while it runs, and each message before the next one is sent", async (bench) => {
  const page = await bench.open("/streams");
  await page.getByText("No streams yet").waitFor();
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

journey("Messages are searched, filtered by direction, and selected by keyboard", async (bench) => {
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
  await page.getByText("No matching messages").waitFor();
});

journey("A chat is assembled into reasoning, text, a tool call and token usage", async (bench) => {
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
  await assembled.getByText("Reasoning").click();
  await assembled.getByText("so a tool has to be asked").waitFor();
  await page.getByRole("tab", { name: "Headers" }).click();
  await page.getByText("text/event-stream; charset=utf-8").waitFor();
});

journey("The list scrolls through a hundred thousand messages, with few of them in the page", async (bench) => {
  await bench.send("/many?count=100000");
  const page = await bench.open("/streams");
  await streamRow(page, /100,000 messages/u).click();
  await message(page, "event 1").first().waitFor();
  await message(page, "event 1").first().click();
  const chosen = messages(page).and(page.locator("[aria-activedescendant]"));
  await chosen.waitFor();
  await messages(page).focus();
  await page.keyboard.press("End");
  await message(page, "event 100000").waitFor();
  assert.equal(await chosen.count(), 0, "the list names a message that is not in the page");
  await messages(page).hover();
  await page.mouse.wheel(0, -50_000 * 26);
  await message(page, /event 50\d{3}$|event 49\d{3}/u)
    .first()
    .waitFor();
  assert.ok((await messages(page).getByRole("button").count()) < 120);
});

journey("A traffic entry shows the messages of its stream, and links to it", async (bench) => {
  await bench.send("/lines", "/plain");
  const page = await bench.open("/traffic");
  const plain = await openRow(page, "/plain");
  assert.equal(await plain.getByRole("tab", { name: /^Stream/u }).count(), 0);
  const pane = await openRow(page, "/lines");
  await pane.getByRole("tab", { name: /^Stream 2/u }).click();
  await message(page, '"slow"').click();
  await pane.getByRole("region", { name: "Message", exact: true }).getByText('"level": "warn"').waitFor();
  // Keys of the list of entries keep their meaning there; arrow keys select messages while the messages have the focus.
  await messages(page).focus();
  await page.keyboard.press("ArrowUp");
  await pane.getByRole("region", { name: "Message", exact: true }).getByText('"level": "info"').waitFor();
  await pane.getByRole("link", { name: "View assembled message" }).click();
  await page.getByRole("heading", { level: 2, name: /\/lines/u }).waitFor();
});

journey(
  "A phone shows the list or the stream, and Escape goes back; unknown streams and kinds are reported",
  async (bench) => {
    await bench.send("/lines");
    const page = await bench.open("/streams", { viewport: { width: 420, height: 800 } });
    await streamRow(page, /\/lines/u).click();
    await message(page, '"started"').waitFor();
    assert.equal(await page.getByRole("heading", { name: "Streams" }).count(), 0);
    await page.keyboard.press("Escape");
    await streamRow(page, /\/lines/u).waitFor();
    await page.getByRole("radio", { name: "WS" }).click();
    await page.getByText("No streams of this type").waitFor();
    await visit(page, "/streams?id=00000000-0000-7000-8000-000000000000");
    await page.getByText("This stream no longer exists").waitFor();
  },
);

journey("The screen Streams has no serious accessibility violation, in either theme", async (bench) => {
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

journey("gRPC calls are a table of methods and statuses, and their messages are decoded", async (bench) => {
  await using shop = await startShop();
  // grpc-js reads the variable when a client is created.
  process.env["grpc_proxy"] = bench.weir.proxyUrl;
  const client = shopClient(`localhost:${shop.port}`, credentials.createInsecure());
  delete process.env["grpc_proxy"];
  const call = (run: (done: (error: unknown) => void) => void): Promise<unknown> => new Promise(run);
  try {
    const order: Order = { id: "42", note: "für 100 €" };
    await call((done) => client.get(order, new Metadata(), {}, done));
    await call((done) => client.fail({ id: "5" }, done));
  } finally {
    client.close();
  }
  const page = await bench.open("/streams?kind=grpc");
  const table = page.getByRole("table", { name: "gRPC calls" });
  await table.getByRole("row", { name: /Fail.*NOT_FOUND/u }).waitFor();
  await table.getByRole("row", { name: /Get.*shop\.v1\.Orders.*OK/u }).waitFor();
  await table.getByRole("button", { name: /^Get/u }).click();
  const messages = page.getByRole("group", { name: "Messages" });
  await messages.getByRole("button").first().click();
  const detail = page.getByRole("region", { name: "Message", exact: true });
  await detail.getByText("No schema defines this message").waitFor();
  await detail.getByText('2: "für 100 €"').waitFor();
  await callApi(bench.weir, "POST", "/grpc/schemas", { files: [{ name: "grpc-shop.proto", text: SHOP_TEXT }] });
  await detail.getByText('"note": "für 100 €"').waitFor();
  await detail.getByText("shop.v1.Order", { exact: true }).waitFor();
  await detail.getByRole("radio", { name: "Bytes" }).click();
  await detail.getByRole("radio", { name: "Hex" }).waitFor();
  // On a phone the table replaces the list.
  await page.setViewportSize({ width: 420, height: 800 });
  await page.getByRole("button", { name: "Back to list" }).click();
  await table.getByRole("row", { name: /Fail.*NOT_FOUND/u }).waitFor();
});

journey(
  "The list of a gRPC call shows decoded messages, also compressed ones, as soon as a schema exists",
  async (bench) => {
    for (const { id } of await bench.weir.get<GrpcSchema[]>("/grpc/schemas")) {
      await callApi(bench.weir, "DELETE", `/grpc/schemas/${id}`);
    }
    await using shop = await startShop();
    process.env["grpc_proxy"] = bench.weir.proxyUrl;
    const gzip = { "grpc.default_compression_algorithm": 2 };
    const client = shopClient(`localhost:${shop.port}`, credentials.createInsecure(), gzip);
    delete process.env["grpc_proxy"];
    try {
      await once(client.watch({ id: "250", note: "every ".repeat(20) }).resume(), "end");
    } finally {
      client.close();
    }
    const page = await bench.open("/streams?kind=grpc");
    const listings: string[] = [];
    page.on("request", (request) => {
      if (request.url().includes("/grpc/frames")) listings.push(request.url());
    });
    await page
      .getByRole("table", { name: "gRPC calls" })
      .getByRole("button", { name: /^Watch/u })
      .click();
    await message(page, '[{"1":"250"},{"2":"every every').waitFor();
    await message(page, '[{"1":"1"},{"2":"order 1"}]').waitFor();
    await callApi(bench.weir, "POST", "/grpc/schemas", { files: [{ name: "grpc-shop.proto", text: SHOP_TEXT }] });
    await message(page, '{"id":"250","note":"every every').waitFor();
    await message(page, '{"id":"1","note":"order 1"}').waitFor();
    await messages(page).focus();
    await page.keyboard.press("End");
    await message(page, '{"id":"249","note":"order 249"}').waitFor();
    await page.getByRole("radio", { name: "Received" }).click();
    await page.getByRole("searchbox", { name: "Search messages" }).fill("order 24");
    // 24, and 240 to 249.
    await eventually(
      "only what matches is left",
      async () => (await messages(page).getByRole("button").count()) === 11,
    );
    await message(page, '{"id":"240","note":"order 240"}').waitFor();
    assert.ok(listings.length <= 10, `${listings.length} requests for decoded messages`);
    const [call] = await bench.weir.get<GrpcStream[]>("/grpc/streams");
    const [request] = await bench.weir.get<GrpcFrame[]>(`/grpc/frames?stream_id=${call?.id}&direction=request`);
    assert.equal(request?.compressed, true);
  },
);

journey("Each of a hundred large messages of a gRPC call is decoded in the list", async (bench) => {
  await callApi(bench.weir, "POST", "/grpc/schemas", { files: [{ name: "grpc-shop.proto", text: SHOP_TEXT }] });
  await using shop = await startShop();
  process.env["grpc_proxy"] = bench.weir.proxyUrl;
  const client = shopClient(`localhost:${shop.port}`, credentials.createInsecure());
  delete process.env["grpc_proxy"];
  try {
    await new Promise<void>((resolve, reject) => {
      const call = client.load((error) => (error === null ? resolve() : reject(error)));
      const note = "x".repeat(60_000);
      for (let id = 1; id <= 100; id += 1) call.write({ id: String(id), note });
      call.end();
    });
  } finally {
    client.close();
  }
  const page = await bench.open("/streams?kind=grpc");
  await page.getByRole("table", { name: "gRPC calls" }).getByRole("button", { name: /^Load/u }).click();
  await message(page, '{"id":"1","note":"xxx').waitFor();
  await messages(page).focus();
  await page.keyboard.press("End");
  await message(page, '{"id":"100","note":"xxx').waitFor();
  await message(page, '{"numbers":[1,2,3').waitFor();
});

/** An echoing origin, and a client connected through Weir. */
async function openEcho({ weir }: UiBench) {
  const server = createServer();
  const echo = new WebSocketServer({ server });
  echo.on("connection", (socket) => socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary })));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const target = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const tunnel = connect(weir.proxyPort, "127.0.0.1");
  tunnel.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  await once(tunnel, "data");
  const client = new WebSocket(`ws://${target}/chat`, { createConnection: () => tunnel });
  const got: string[] = [];
  let closeCode = 0;
  client.on("message", (data) => got.push((data as Buffer).toString()));
  client.on("close", (code) => (closeCode = code));
  await once(client, "open");
  return {
    client,
    got,
    closeCode: () => closeCode,
    [Symbol.asyncDispose]: async () => {
      client.terminate();
      for (const socket of echo.clients) socket.terminate();
      await new Promise((closed) => server.close(closed));
    },
  };
}

journey(
  "WebSocket messages are shown, sent, paused, edited and dropped, and the connection is closed",
  async (bench) => {
    await using echo = await openEcho(bench);
    const page = await bench.open("/streams");
    await page
      .getByRole("group", { name: "Streams" })
      .getByRole("button", { name: /^open.*WS.*\/chat/u })
      .click();
    const rows = page.getByRole("group", { name: "Messages" }).getByRole("button");
    echo.client.send('{"hello":"there"}');
    await rows.filter({ hasText: "Sent" }).filter({ hasText: "hello" }).waitFor();
    await rows.filter({ hasText: "Received" }).filter({ hasText: "hello" }).waitFor();

    // Sent to the client: the server does not receive it.
    const composer = page.getByRole("form", { name: "Send message" });
    await composer.getByRole("radio", { name: "To the client" }).click();
    await composer.getByRole("textbox", { name: "Message content" }).fill("made in Weir");
    await page.keyboard.press("Control+Enter");
    await eventually("the client has it", () => echo.got.includes("made in Weir"));
    await rows.filter({ hasText: "injected" }).filter({ hasText: "made in Weir" }).waitFor();

    // Paused by a rule, and edited.
    await page.getByRole("button", { name: "Rules for WebSocket messages" }).click();
    const dialog = page.getByRole("dialog", { name: "Rules for WebSocket messages" });
    await dialog.getByRole("textbox", { name: "Text pattern" }).fill("secret");
    await dialog.getByRole("radio", { name: "Sent" }).click();
    await dialog.getByRole("button", { name: "Add rule" }).click();
    await dialog.getByRole("listitem").getByText("sent, text secret: pause").waitFor();
    await dialog.getByRole("button", { name: "Done" }).click();
    echo.client.send("a secret plan");
    await page.getByRole("button", { name: "1 message paused" }).waitFor();
    const waiting = page.getByRole("region", { name: "Paused message" });
    await waiting.getByRole("textbox").fill("a public plan");
    await waiting.getByRole("button", { name: "Send edited" }).click();
    await eventually("the server got the other text", () => echo.got.includes("a public plan"));
    await rows.filter({ hasText: "modified" }).filter({ hasText: "a public plan" }).click();
    const detail = page.getByRole("region", { name: "Message", exact: true });
    await detail.getByText("Before modification by a rule").click();
    await detail.getByText("a secret plan").waitFor();
    await page.keyboard.press("Escape");

    // Paused, and dropped by a key.
    echo.client.send("secret again");
    await waiting.getByText("paused by Pause sent messages").waitFor();
    await page.getByRole("heading", { level: 2 }).click();
    await page.keyboard.press("x");
    await rows.filter({ hasText: "dropped" }).filter({ hasText: "secret again" }).waitFor();
    await waiting.waitFor({ state: "detached" });

    await composer.getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: "Close connection" }).click();
    await eventually("the client received the close", () => echo.closeCode() === 1000);
    await composer.waitFor({ state: "detached" });
  },
);

journey(
  "A rule is created from a message's context menu, completed, and applied to the next message",
  async (bench) => {
    await using echo = await openEcho(bench);
    const page = await bench.open("/streams");
    await page
      .getByRole("group", { name: "Streams" })
      .getByRole("button", { name: /^open.*WS.*\/chat/u })
      .first()
      .click();
    const rows = page.getByRole("group", { name: "Messages" }).getByRole("button");
    echo.client.send("price: 5 $ (a)");
    await eventually("the server received the message", () => echo.got.includes("price: 5 $ (a)"));
    await rows.filter({ hasText: "Sent" }).filter({ hasText: "price" }).click({ button: "right" });
    await page.getByRole("menuitem", { name: "Replace text…" }).click();
    const dialog = page.getByRole("dialog", { name: "Rules for WebSocket messages" });
    const field = dialog.getByRole("textbox", { name: "Text pattern" });
    await eventually("the form is filled in", async () => (await field.inputValue()) === "^price: 5 \\$ \\(a\\)$");
    const replacement = dialog.getByRole("textbox", { name: "Replacement" });
    await eventually(
      "the replacement begins with the text",
      async () => (await replacement.inputValue()) === "price: 5 $$ (a)",
    );
    await replacement.fill("price: 6 $$");
    await dialog.getByRole("button", { name: "Add rule" }).click();
    await dialog
      .getByRole("listitem")
      .getByText(/sent, host 127\.0\.0\.1, .*replace with/u)
      .waitFor();
    await dialog.getByRole("button", { name: "Done" }).click();
    echo.client.send("price: 5 $ (a)");
    await eventually("the server got what the rule made of it", () => echo.got.includes("price: 6 $"));

    // By keyboard, for the selected message.
    await rows.filter({ hasText: "Received" }).filter({ hasText: "price: 6 $" }).click();
    await page.getByRole("group", { name: "Messages" }).press("ContextMenu");
    await page.getByRole("menuitem", { name: "Drop…" }).click();
    await dialog.getByRole("radio", { name: "Received", checked: true }).waitFor();
  },
);

journey("A message rule is edited, deleted and restored, and messages are deleted on request", async (bench) => {
  await using echo = await openEcho(bench);
  echo.client.send("price: 5");
  const rules = async () => await bench.weir.get<readonly WsRule[]>("/ws-traffic/rules");
  for (const { id } of await rules()) await callApi(bench.weir, "DELETE", `/ws-traffic/rules/${id}`);
  const body = { name: "Prices", match: { text: "price", message_type: "text" }, action: { type: "drop" } };
  await callApi(bench.weir, "POST", "/ws-traffic/rules", body);
  const page = await bench.open("/streams?kind=websocket");
  await page.getByRole("button", { name: "Rules for WebSocket messages" }).click();
  const dialog = page.getByRole("dialog", { name: "Rules for WebSocket messages" });
  await dialog.getByRole("button", { name: "Edit Prices" }).click();
  const name = dialog.getByRole("textbox", { name: "Name" });
  await eventually("the form is filled in", async () => (await name.inputValue()) === "Prices");
  await dialog.getByRole("textbox", { name: "Host" }).fill("shop.example");
  await dialog.getByRole("button", { name: "Save rule" }).click();
  await dialog.getByText("text, host shop.example, text price: drop").waitFor();
  await dialog.getByRole("button", { name: "Add rule" }).waitFor();
  await dialog.getByRole("button", { name: "Delete Prices" }).click();
  await eventually("it is deleted", async () => (await rules()).length === 0);
  await dialog.getByRole("button", { name: "Done" }).click();
  await page.getByRole("region", { name: "Notifications" }).getByRole("button", { name: "Undo" }).click();
  await eventually("it is there again", async () => (await rules())[0]?.match.host === "shop.example");

  const messages = async () => await bench.weir.get<readonly unknown[]>("/ws-traffic/messages");
  await eventually("the message is stored", async () => (await messages()).length > 0);
  await page.getByRole("button", { name: "Clear the messages of WebSocket connections" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Clear", exact: true }).click();
  await eventually("they are removed", async () => (await messages()).length === 0);
});
