import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { test } from "node:test";
import { cutConnection } from "./cut.ts";

/** Both ends of an open connection. */
async function pair(): Promise<{ readonly near: Socket; readonly far: Socket; readonly close: () => void }> {
  const server = createServer({ allowHalfOpen: true });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection");
  const near = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => undefined);
  const [far] = (await accepted) as [Socket];
  await once(near, "connect");
  far.on("error", () => undefined).resume();
  return { near, far, close: () => server.close() };
}

test("a cut connection is reset, so that its peer cannot take it for an end", async () => {
  const { near, far, close } = await pair();
  near.write("half");
  const broken = once(far, "error");
  cutConnection(near);
  const [error] = (await broken) as [NodeJS.ErrnoException];
  assert.equal(error.code, "ECONNRESET");
  close();
});

test("a connection that is cut right after its end is closed all the same, and keeps no descriptor", async () => {
  const { near, far, close } = await pair();
  near.write("all");
  near.end();
  const closed = once(near, "close");
  cutConnection(near);
  await closed;
  far.destroy();
  close();
});
