import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import type { AddressInfo } from "node:net";
import { WebSocket, WebSocketServer } from "ws";
import type { WsRule } from "@headworks/capture-contract";
import { callApi, eventually, uiFile } from "./ui-rig.ts";
import type { UiBench } from "./ui-rig.ts";

const journey = uiFile();

/** An origin that sends back what it gets, and a client of it by way of Weir. */
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

journey("Messages of a WebSocket are shown, added, held, changed and left out, and it is closed", async (bench) => {
  await using echo = await openEcho(bench);
  const page = await bench.open("/streams");
  await page
    .getByRole("group", { name: "List of streams" })
    .getByRole("button", { name: /^open.*WS.*\/chat/u })
    .click();
  const rows = page.getByRole("group", { name: "Messages" }).getByRole("button");
  echo.client.send('{"hello":"there"}');
  await rows.filter({ hasText: "Sent" }).filter({ hasText: "hello" }).waitFor();
  await rows.filter({ hasText: "Received" }).filter({ hasText: "hello" }).waitFor();

  // Added towards the client: the server knows nothing of it.
  const composer = page.getByRole("form", { name: "Add a message" });
  await composer.getByRole("radio", { name: "To the client" }).click();
  await composer.getByRole("textbox", { name: "Content of the message" }).fill("made in Weir");
  await page.keyboard.press("Control+Enter");
  await eventually("the client has it", () => echo.got.includes("made in Weir"));
  await rows.filter({ hasText: "injected" }).filter({ hasText: "made in Weir" }).waitFor();

  // Held by a rule, and changed.
  await page.getByRole("button", { name: "Rules for WebSocket messages" }).click();
  const dialog = page.getByRole("dialog", { name: "Rules for WebSocket messages" });
  await dialog.getByRole("textbox", { name: "Text pattern" }).fill("secret");
  await dialog.getByRole("radio", { name: "Sent" }).click();
  await dialog.getByRole("button", { name: "Add the rule" }).click();
  await dialog.getByRole("listitem").getByText("sent, text secret: pause").waitFor();
  await dialog.getByRole("button", { name: "Done" }).click();
  echo.client.send("a secret plan");
  await page.getByRole("button", { name: "1 message waits" }).waitFor();
  const waiting = page.getByRole("region", { name: "Message that waits" });
  await waiting.getByRole("textbox").fill("a public plan");
  await waiting.getByRole("button", { name: "Send changed" }).click();
  await eventually("the server got the other text", () => echo.got.includes("a public plan"));
  await rows.filter({ hasText: "modified" }).filter({ hasText: "a public plan" }).click();
  const detail = page.getByRole("region", { name: "Message", exact: true });
  await detail.getByText("Before a rule changed it").click();
  await detail.getByText("a secret plan").waitFor();
  await page.keyboard.press("Escape");

  // Held and left out by a key.
  echo.client.send("secret again");
  await waiting.getByText("held by Pause sent messages").waitFor();
  await page.getByRole("heading", { level: 2 }).click();
  await page.keyboard.press("x");
  await rows.filter({ hasText: "dropped" }).filter({ hasText: "secret again" }).waitFor();
  await waiting.waitFor({ state: "detached" });

  await composer.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Close the connection" }).click();
  await eventually("the client was told", () => echo.closeCode() === 1000);
  await composer.waitFor({ state: "detached" });
});

journey("A rule is made of a message from its context menu, filled in, and holds for the next one", async (bench) => {
  await using echo = await openEcho(bench);
  const page = await bench.open("/streams");
  await page
    .getByRole("group", { name: "List of streams" })
    .getByRole("button", { name: /^open.*WS.*\/chat/u })
    .first()
    .click();
  const rows = page.getByRole("group", { name: "Messages" }).getByRole("button");
  echo.client.send("price: 5 $ (a)");
  await eventually("the server answered", () => echo.got.includes("price: 5 $ (a)"));
  await rows.filter({ hasText: "Sent" }).filter({ hasText: "price" }).click({ button: "right" });
  await page.getByRole("menuitem", { name: "Replace the text…" }).click();
  const dialog = page.getByRole("dialog", { name: "Rules for WebSocket messages" });
  const field = dialog.getByRole("textbox", { name: "Text pattern" });
  await eventually("the form is filled in", async () => (await field.inputValue()) === "^price: 5 \\$ \\(a\\)$");
  const replacement = dialog.getByRole("textbox", { name: "Replacement" });
  await eventually(
    "the replacement begins with the text",
    async () => (await replacement.inputValue()) === "price: 5 $$ (a)",
  );
  await replacement.fill("price: 6 $$");
  await dialog.getByRole("button", { name: "Add the rule" }).click();
  await dialog
    .getByRole("listitem")
    .getByText(/sent, host 127\.0\.0\.1, .*replace with/u)
    .waitFor();
  await dialog.getByRole("button", { name: "Done" }).click();
  echo.client.send("price: 5 $ (a)");
  await eventually("the server got what the rule made of it", () => echo.got.includes("price: 6 $"));

  // By the keyboard, for the message that is chosen.
  await rows.filter({ hasText: "Received" }).filter({ hasText: "price: 6 $" }).click();
  await page.getByRole("group", { name: "Messages" }).press("ContextMenu");
  await page.getByRole("menuitem", { name: "Leave out…" }).click();
  await dialog.getByRole("radio", { name: "Received", checked: true }).waitFor();
});

journey(
  "A rule for messages is changed, deleted and brought back, and messages are removed on demand",
  async (bench) => {
    await using echo = await openEcho(bench);
    echo.client.send("price: 5");
    const rules = async () => await bench.weir.get<readonly WsRule[]>("/ws-traffic/rules");
    for (const { id } of await rules()) await callApi(bench.weir, "DELETE", `/ws-traffic/rules/${id}`);
    const body = { name: "Prices", match: { text: "price", message_type: "text" }, action: { type: "drop" } };
    await callApi(bench.weir, "POST", "/ws-traffic/rules", body);
    const page = await bench.open("/streams?kind=websocket");
    await page.getByRole("button", { name: "Rules for WebSocket messages" }).click();
    const dialog = page.getByRole("dialog", { name: "Rules for WebSocket messages" });
    await dialog.getByRole("button", { name: "Change Prices" }).click();
    const name = dialog.getByRole("textbox", { name: "Name" });
    await eventually("the form is filled in", async () => (await name.inputValue()) === "Prices");
    await dialog.getByRole("textbox", { name: "Host" }).fill("shop.example");
    await dialog.getByRole("button", { name: "Save the rule" }).click();
    await dialog.getByText("text, host shop.example, text price: drop").waitFor();
    await dialog.getByRole("button", { name: "Add the rule" }).waitFor();
    await dialog.getByRole("button", { name: "Delete Prices" }).click();
    await eventually("it is deleted", async () => (await rules()).length === 0);
    await dialog.getByRole("button", { name: "Done" }).click();
    await page.getByRole("region", { name: "Messages" }).getByRole("button", { name: "Undo" }).click();
    await eventually("it is there again", async () => (await rules())[0]?.match.host === "shop.example");

    const messages = async () => await bench.weir.get<readonly unknown[]>("/ws-traffic/messages");
    await eventually("the message is stored", async () => (await messages()).length > 0);
    await page.getByRole("button", { name: "Remove the messages of WebSocket connections" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove", exact: true }).click();
    await eventually("they are removed", async () => (await messages()).length === 0);
  },
);
