import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import {
  FRAME,
  frame,
  GET,
  PREFACE,
  rawClient,
  request,
  section,
  settings,
  startOrigin,
  startRawHttp2Origin,
  u32,
} from "@headworks/testkit";
import { serving, startGateway } from "./gateway-rig.ts";

const routes = [
  { name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
] as const;

const name = fc.constantFrom(
  ":method",
  ":path",
  ":status",
  ":protocol",
  "content-length",
  "te",
  "x-a",
  "cookie",
  "expect",
);
const value = fc.constantFrom("GET", "/", "200", "103", "0", "5", "trailers", "a=1", "100-continue", "\r\n", "\xff");
const fields = fc.array(fc.tuple(name, value), { maxLength: 6 }).map((pairs) => section(pairs));
const payload = fc.oneof(
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc.nat(0x7fffffff).map(u32),
  fields,
  fc.constant(section(GET)),
  fc.constant(section([[":status", "200"]])),
);
const anyFrame = fc
  .tuple(fc.oneof(fc.constantFrom(...Object.values(FRAME)), fc.nat(20)), fc.nat(0x2f), fc.nat(9), payload)
  .map(([type, flags, stream, bytes]) => frame(type, flags, stream, bytes));
const bytesOf = fc.array(fc.oneof(anyFrame, fc.constantFrom(request(1), request(3), request(5))), { maxLength: 12 });

test("HTTP/2: no sequence of frames of a client ends the gateway, or leaves a request behind", async () => {
  await using origin = await startOrigin({ handler: (_incoming, response) => void response.end("here") });
  await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [...routes] });
  await fc.assert(
    fc.asyncProperty(bytesOf, async (frames) => {
      await using client = await rawClient(gateway.port());
      await client.write(Buffer.concat([PREFACE, settings(), ...frames]));
      await client.readSome().catch(() => undefined);
      client.destroy();
      assert.equal((await gateway.send({ path: "/" })).status, 200);
    }),
    { numRuns: 400 },
  );
  const { body } = await gateway.send({ path: "/metrics" });
  assert.match(body.toString(), /^active_requests 1$/m);
});

test("HTTP/2 upstream: no sequence of frames of an endpoint ends the gateway, or leaves a client without an end", async () => {
  let frames: readonly Buffer[] = [];
  await using origin = await startRawHttp2Origin((_stream, write, connection) => {
    write(...frames);
    connection.end();
  });
  await using gateway = await startGateway({
    ...serving("api", [origin.port], { protocol: "h2c" }),
    routes: [...routes],
  });
  await fc.assert(
    fc.asyncProperty(bytesOf, async (sent) => {
      frames = sent;
      await using client = await rawClient(gateway.port());
      await client.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      const text = (await client.collect()).toString("latin1");
      // A whole or truncated response; never endless silence, never other bytes.
      assert.match(text, /^(?:HTTP\/1\.1 [1-5][0-9]{2} |$)/);
      assert.equal((await gateway.send({ path: "/healthz" })).status, 200);
    }),
    { numRuns: 400 },
  );
});
