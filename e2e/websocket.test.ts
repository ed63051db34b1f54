import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { Agent, createServer } from "node:https";
import type { Server } from "node:https";
import { connect } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { after, before, test } from "node:test";
import type { WsConnection, WsMessage, WsStats } from "@headworks/capture-contract";
import { peer, runProcess, waitUntil } from "@headworks/testkit";
import { closePayload, frameBytes, MessageDeflater } from "@headworks/websocket";
import { chromium } from "playwright-core";
import { WebSocket, WebSocketServer } from "ws";
import type { ClientOptions } from "ws";
import { Cleanups, LOCAL_NAMES, originAuthority, startWeir, workDirectory } from "./rig.ts";
import type { Weir } from "./rig.ts";

const curl = peer("curl");
const browser = peer("chromium");
const python = websocketsSkip();
const cleanups = new Cleanups();
let weir: Weir;
let origin: Server;
let port = 0;

/** The origin's behaviour for a connection, by path. */
const serving: Record<string, (socket: WebSocket) => void> = {
  "/echo": (socket) => socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary })),
};
/** The origin's behaviour for the raw socket after a handshake, by path. */
const raw: Record<string, (socket: Duplex) => void> = {};
const HANDSHAKE = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";

const PAGE = `<!doctype html><title>talk</title><p id="out"></p><script>
const socket = new WebSocket("wss://" + location.host + "/echo");
const got = [];
socket.onopen = () => { socket.send("hällo from the browser"); socket.send(new Uint8Array([1, 2, 255])); };
socket.onmessage = async ({ data }) => {
  got.push(typeof data === "string" ? data : [...new Uint8Array(await data.arrayBuffer())].join("-"));
  if (got.length === 2) { document.querySelector("#out").textContent = got.join(" | "); socket.close(4000, "seen"); }
};
</script>`;

before(async () => {
  weir = cleanups.use(await startWeir());
  const leaf = originAuthority.issueLeaf(LOCAL_NAMES);
  origin = createServer({ cert: leaf.chainPem, key: leaf.keyPem }, (_request, response) => {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(PAGE);
  });
  const sockets = new Set<Duplex>();
  const server = new WebSocketServer({ noServer: true, perMessageDeflate: { threshold: 0 } });
  origin.on("upgrade", (request, socket, head) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    const path = request.url ?? "";
    const rawly = raw[path];
    if (rawly !== undefined) return rawly(socket);
    server.handleUpgrade(request, socket, head, (webSocket) => serving[path]?.(webSocket));
  });
  origin.listen(0, "127.0.0.1");
  await once(origin, "listening");
  ({ port } = origin.address() as AddressInfo);
  cleanups.use({
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      origin.closeAllConnections();
      await new Promise((closed) => origin.close(closed));
    },
  });
});
after(() => cleanups.run());

/** One of several installed Pythons may have the module. */
function websocketsSkip(): { readonly path: string; readonly skip: string | false } {
  for (const path of [peer("python3").path, "/usr/bin/python3"]) {
    if (path !== "" && spawnSync(path, ["-c", "import websockets"]).status === 0) return { path, skip: false };
  }
  const skip = "no python3 has the module websockets";
  if (process.env["CI"] === "true") throw new Error(`${skip}, and with CI=true nothing may be skipped`);
  process.stdout.write(`# skipping: ${skip}\n`);
  return { path: "", skip };
}

/** Connects to its targets by CONNECT through Weir, over TLS that trusts it. */
class TunnelAgent extends Agent {
  readonly #weir: Weir;

  constructor(through: Weir) {
    super();
    this.#weir = through;
  }

  override createConnection(
    options: { host?: string | null | undefined; port?: number | string | null | undefined },
    callback?: (error: Error | null, stream: Duplex) => void,
  ): Duplex {
    const socket: Socket = connect(this.#weir.proxyPort, "127.0.0.1");
    const target = `${options.host}:${options.port}`;
    socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
    socket.once("error", (error) => callback?.(error, socket));
    socket.once("data", () => {
      const secure = connectTls({ socket, servername: "localhost", ca: this.#weir.caPem });
      callback?.(null, secure);
    });
    // Passed to the callback once the tunnel is open.
    return undefined as unknown as Duplex;
  }
}

async function open(path: string, options: ClientOptions = {}, through = weir): Promise<WebSocket> {
  const socket = new WebSocket(`wss://localhost:${port}${path}`, { agent: new TunnelAgent(through), ...options });
  socket.on("error", () => undefined);
  await once(socket, "open");
  return socket;
}

async function connectionOf(
  path: string,
  holds = (_connection: WsConnection) => true,
  from = weir,
): Promise<WsConnection> {
  return await waitUntil(
    async () =>
      (await from.get<WsConnection[]>("/ws-traffic/connections")).find((one) => one.path === path && holds(one)),
    { what: `the connection to ${path}`, timeoutMs: 20_000 },
  );
}

async function messagesOf(id: string, count: number, query = ""): Promise<WsMessage[]> {
  return await waitUntil(
    async () => {
      const list = await weir.get<WsMessage[]>(`/ws-traffic/messages?limit=1000&connection_id=${id}${query}`);
      return list.length >= count ? list : undefined;
    },
    { what: `${count} messages`, timeoutMs: 20_000 },
  );
}

test("10,000 messages each way over TLS and compressed arrive in order, and all are stored", async () => {
  const COUNT = 10_000;
  const client = await open("/echo", { perMessageDeflate: { threshold: 0 } });
  let arrived = 0;
  client.on("message", (data) => {
    assert.equal((data as Buffer).toString(), `{"tick":${arrived}}`);
    arrived += 1;
  });
  for (let index = 0; index < COUNT; index += 1) client.send(`{"tick":${index}}`);
  await waitUntil(() => arrived === COUNT, { timeoutMs: 60_000 });
  const { id } = await connectionOf("/echo", (one) => one.messages_received === COUNT);
  const connection = await weir.get<WsConnection>(`/ws-traffic/connections/${id}`);
  assert.deepEqual(
    [connection.messages_sent, connection.messages_received, connection.messages_not_stored],
    [COUNT, COUNT, 0],
  );
  for (const direction of ["send", "receive"]) {
    const last = await weir.get<WsMessage[]>(
      `/ws-traffic/messages?connection_id=${id}&direction=${direction}&offset=${COUNT - 1}&limit=10`,
    );
    assert.deepEqual(
      last.map(({ payload }) => payload.json),
      [{ tick: COUNT - 1 }],
    );
  }
  const stats = await weir.get<WsStats>("/ws-traffic/stats");
  assert.equal(stats.messages_stored, 2 * COUNT);
  client.terminate();
});

test("Python's websockets works through Weir, with its default compression", { skip: python.skip }, async () => {
  const SCRIPT = `
import asyncio, socket, ssl, sys, websockets
proxy, port, ca = int(sys.argv[1]), sys.argv[2], sys.argv[3]
tunnel = socket.create_connection(("127.0.0.1", proxy))
tunnel.sendall(f"CONNECT localhost:{port} HTTP/1.1\\r\\nHost: localhost:{port}\\r\\n\\r\\n".encode())
tunnel.recv(4096)
tunnel.setblocking(False)
async def talk():
    context = ssl.create_default_context(cafile=ca)
    async with websockets.connect(f"wss://localhost:{port}/echo?python", sock=tunnel, ssl=context, server_hostname="localhost") as peer:
        for text in ["grüße", "again again again"]:
            await peer.send(text)
            print(await peer.recv())
        await peer.send([b"in ", b"parts"])
        print((await peer.recv()).decode())
asyncio.run(talk())
`;
  serving["/echo?python"] = serving["/echo"] ?? (() => undefined);
  const exit = await runProcess(python.path, ["-c", SCRIPT, String(weir.proxyPort), String(port), weir.caFile]);
  assert.equal(exit.code, 0, exit.stderr);
  assert.equal(exit.stdout, "grüße\nagain again again\nin parts\n");
  const { id, extensions } = await connectionOf("/echo?python", ({ state }) => state === "closed");
  assert.match(extensions ?? "", /permessage-deflate/);
  const sent = await messagesOf(id, 4, "&direction=send");
  assert.deepEqual(
    sent.filter(({ message_type: type }) => type === "text").map(({ payload }) => payload.text),
    ["grüße", "again again again"],
  );
  const joined = sent.find(({ joined: whole }) => whole !== undefined)?.joined;
  assert.equal(Buffer.from(joined?.raw_base64 ?? "", "base64").toString(), "in parts");
});

test("Chromium's WebSocket works through Weir, and its messages are recorded", { skip: browser.skip }, async () => {
  const home = await workDirectory(cleanups);
  const instance = await chromium.launch({
    executablePath: browser.path,
    env: { PATH: process.env["PATH"] ?? "", HOME: home.path },
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--ignore-certificate-errors",
      `--proxy-server=${weir.proxyUrl}`,
      "--proxy-bypass-list=<-loopback>",
    ],
    timeout: 60_000,
  });
  try {
    const page = await instance.newPage();
    await page.goto(`https://localhost:${port}/page`);
    await page.waitForFunction("document.querySelector('#out').textContent !== ''");
    assert.equal(await page.textContent("#out"), "hällo from the browser | 1-2-255");
  } finally {
    await instance.close();
  }
  const { id, close_reason: reason, close_code: code } = await connectionOf("/echo", (one) => one.close_code === 4000);
  assert.deepEqual([code, reason], [4000, "seen"]);
  const list = await messagesOf(id, 6);
  assert.deepEqual(
    list.filter(({ message_type: type }) => type === "text").map(({ direction, payload }) => [direction, payload.text]),
    [
      ["send", "hällo from the browser"],
      ["receive", "hällo from the browser"],
    ],
  );
});

test("curl, which does not support WebSocket, gets the frames unchanged", { skip: curl.skip }, async () => {
  const bytes = Buffer.concat([
    frameBytes({ opcode: 1, payload: Buffer.from("raw") }),
    frameBytes({ opcode: 8, payload: closePayload(1000, "") }),
  ]);
  raw["/raw"] = (socket) => {
    socket.write(`${HANDSHAKE}\r\n`);
    socket.end(bytes);
  };
  const args = [
    "-sS",
    "-N",
    "--http1.1",
    "--cacert",
    weir.caFile,
    "-x",
    weir.proxyUrl,
    "-H",
    "Connection: Upgrade",
    "-H",
    "Upgrade: websocket",
  ];
  const key = ["-H", "Sec-WebSocket-Version: 13", "-H", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "-m", "5"];
  const exit = await runProcess(curl.path, [...args, ...key, `https://localhost:${port}/raw`]);
  // Its output is decoded as UTF-8, but the first byte of a frame is not UTF-8.
  assert.ok(exit.stdout.includes("\u0003raw"), `${exit.code} ${exit.stderr}`);
  const { id } = await connectionOf("/raw");
  assert.deepEqual(
    (await messagesOf(id, 2)).map(({ payload }) => payload.text ?? "close"),
    ["raw", "1000 Normal Closure"],
  );
});

test("servers that violate the protocol, announce wrong lengths or send compression bombs affect nothing else", async () => {
  const bomb = frameBytes({
    opcode: 1,
    reserved: 4,
    payload: new MessageDeflater(false, 15).deflate(Buffer.alloc(64 * 1_048_576)),
  });
  const table: readonly [string, string, Buffer, RegExp][] = [
    [
      "reserved",
      "",
      Buffer.concat([frameBytes({ opcode: 1, payload: Buffer.from("good") }), Buffer.from("8300ffff", "hex")]),
      /opcode 3 is reserved/,
    ],
    ["masked", "", frameBytes({ opcode: 1, payload: Buffer.from("x"), mask: 5 }), /masked/],
    ["long", "", Buffer.from("827fffffffffffffffff00", "hex"), /larger than any/],
    [
      "extension",
      "Sec-WebSocket-Extensions: x-unknown\r\n",
      frameBytes({ opcode: 1, payload: Buffer.from("x"), reserved: 2 }),
      /x-unknown is not known/,
    ],
  ];
  for (const [name, fields, bytes, problem] of table) {
    raw[`/hostile/${name}`] = (socket) => {
      socket.write(`${HANDSHAKE}${fields}\r\n`);
      socket.write(bytes);
    };
    const got = await rawClient(`/hostile/${name}`, bytes.length);
    assert.deepEqual(got, bytes, "its bytes pass unchanged");
    const { problem: reported } = await connectionOf(`/hostile/${name}`, (one) => one.problem !== null);
    assert.match(reported ?? "", problem);
  }
  raw["/hostile/bomb"] = (socket) => {
    socket.write(`${HANDSHAKE}Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n`);
    for (let index = 0; index < 20; index += 1) socket.write(bomb);
  };
  const before = weir.residentBytes();
  assert.equal((await rawClient("/hostile/bomb", bomb.length * 20)).length, bomb.length * 20);
  const { id } = await connectionOf("/hostile/bomb", (one) => one.messages_received === 20);
  assert.match((await messagesOf(id, 20))[0]?.problem ?? "", /too large/);
  assert.ok(weir.residentBytes() - before < 400 * 1_048_576, "memory is bounded");
  const client = await open("/echo");
  client.send("still here");
  const [response] = (await once(client, "message")) as [Buffer];
  assert.equal(response.toString(), "still here");
  client.terminate();
});

/** A client without a codec: returns the bytes after the response's head once there are so many. */
async function rawClient(path: string, count: number): Promise<Buffer> {
  const agent = new TunnelAgent(weir);
  const socket = await new Promise<Duplex>((resolve, reject) => {
    agent.createConnection({ host: "localhost", port }, (error, stream) => (error ? reject(error) : resolve(stream)));
  });
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: localhost:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
  );
  let got = Buffer.alloc(0);
  let start = -1;
  socket.on("data", (piece: Buffer) => {
    got = Buffer.concat([got, piece]);
    if (start === -1 && got.includes("\r\n\r\n")) start = got.indexOf("\r\n\r\n") + 4;
  });
  await waitUntil(() => start !== -1 && got.length - start >= count, { timeoutMs: 20_000 });
  socket.destroy();
  return got.subarray(start, start + count);
}
