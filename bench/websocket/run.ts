import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { spawnProcess, temporaryDirectory, waitUntil } from "@headworks/testkit";
import { frameBytes, MessageDeflater } from "@headworks/websocket";

/**
 * The cost of reading WebSocket messages: the same frames pass through Weir once as WebSocket, read and stored, and once under
 * a protocol that it relays unread. Prints the CPU time of the whole process and of its main thread for each
 * message, and the number of stored messages.
 */
const { values } = parseArgs({
  options: {
    messages: { type: "string", default: "100000" },
    bytes: { type: "string", default: "200" },
    rate: { type: "string", default: "0" },
  },
});
const MESSAGES = Number(values.messages);
const BYTES = Number(values.bytes);
/** Messages per second; 0 for the maximum rate. */
const RATE = Number(values.rate);
const MAIN = fileURLToPath(new URL("../../apps/capture-proxy/bin/weir.js", import.meta.url));
const TICKS_PER_SECOND = 100;

interface Case {
  readonly name: string;
  readonly upgrade: string;
  readonly extensions: string;
  readonly frame: (index: number) => Buffer;
}

const text = (index: number): Buffer => Buffer.from(`{"tick":${index},"pad":"${"x".repeat(BYTES)}"}`.slice(0, BYTES));
const deflater = new MessageDeflater(true, 15);
const plain = (index: number): Buffer => frameBytes({ opcode: 1, payload: text(index), mask: 0x01020304 + index });
const CASES: readonly Case[] = [
  { name: "relayed, not read", upgrade: "x-frames", extensions: "", frame: plain },
  { name: "read and stored", upgrade: "websocket", extensions: "", frame: plain },
  {
    name: "read and stored, compressed",
    upgrade: "websocket",
    extensions: "Sec-WebSocket-Extensions: permessage-deflate\r\n",
    frame: (index) => frameBytes({ opcode: 1, reserved: 4, payload: deflater.deflate(text(index)), mask: index }),
  },
];

/** User and system time in seconds, of the process and of its first thread. */
function processorTime(pid: number): { readonly all: number; readonly main: number } {
  const of = (path: string): number => {
    const fields = readFileSync(path, "utf8").split(") ")[1]?.split(" ") ?? [];
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  };
  return { all: of(`/proc/${pid}/stat`), main: of(`/proc/${pid}/task/${pid}/stat`) };
}

const origin = createServer();
let arrivedBytes = 0;
let extensions = "";
origin.on("upgrade", (request, socket) => {
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: ${request.headers.upgrade}\r\nConnection: Upgrade\r\n${extensions}\r\n`,
  );
  socket.on("data", (piece: Buffer) => (arrivedBytes += piece.length));
  socket.on("error", () => undefined);
});
origin.listen(0, "127.0.0.1");
await once(origin, "listening");
const { port } = origin.address() as AddressInfo;
await using directory = await temporaryDirectory();
const weir = await spawnProcess(process.execPath, [
  MAIN,
  "serve",
  "--json",
  `--data-dir=${directory.file("data")}`,
  "--proxy-port=0",
  "--api-port=0",
]);
const [line] = await weir.waitForOutput(/^\{"proxy".*\}$/m, 30_000);
const started = JSON.parse(line) as { proxy: string; api: string; pid: number };

async function openThrough(upgrade: string): Promise<Socket> {
  const socket = connect(Number(new URL(started.proxy).port), "127.0.0.1");
  socket.write(
    `GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: ${upgrade}\r\n` +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
  );
  await once(socket, "data");
  return socket;
}

async function send(socket: Socket, frames: readonly Buffer[]): Promise<void> {
  const startedMs = performance.now();
  for (let index = 0; index < frames.length; index += 10) {
    const hasRoom = socket.write(Buffer.concat(frames.slice(index, index + 10)));
    if (!hasRoom) await once(socket, "drain");
    const dueMs = RATE === 0 ? 0 : (index / RATE) * 1000 - (performance.now() - startedMs);
    if (dueMs > 1) await new Promise((resolve) => setTimeout(resolve, dueMs));
  }
}

try {
  for (const each of CASES) {
    extensions = each.extensions;
    const frames = Array.from({ length: MESSAGES }, (_, index) => each.frame(index));
    const wireBytes = frames.reduce((sum, { length }) => sum + length, 0);
    arrivedBytes = 0;
    const socket = await openThrough(each.upgrade);
    const before = processorTime(started.pid);
    const startedMs = performance.now();
    await send(socket, frames);
    await waitUntil(() => arrivedBytes >= wireBytes, { timeoutMs: 120_000 });
    const seconds = (performance.now() - startedMs) / 1000;
    await new Promise((resolve) => setTimeout(resolve, 1500));
    const after = processorTime(started.pid);
    const response = await fetch(`${started.api}/api/ws-traffic/stats`);
    const stats = (await response.json()) as { messages_stored: number; messages_not_stored: number };
    const micros = (from: number, to: number): string => (((to - from) / MESSAGES) * 1e6).toFixed(1);
    process.stdout.write(
      `${each.name}: ${Math.round(MESSAGES / seconds)} messages/s, ${micros(before.all, after.all)} µs of processor time a message ` +
        `(${micros(before.main, after.main)} µs on the main thread); stored so far ${stats.messages_stored}, not stored ${stats.messages_not_stored}\n`,
    );
    socket.destroy();
  }
} finally {
  await weir.stop();
  origin.closeAllConnections();
  origin.close();
}
