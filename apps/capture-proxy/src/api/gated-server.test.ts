import assert from "node:assert/strict";
import { test } from "node:test";
import { rawClient, startOrigin } from "@headworks/testkit";
import { discardRest } from "./gated-server.ts";

test("a client that keeps sending after its response is cut off", async () => {
  await using server = await startOrigin({
    handler: (request, response) => {
      response.writeHead(404, { "content-length": 2 });
      response.write("no");
      void discardRest(request, 1000);
    },
  });
  await using client = await rawClient(server.port);
  await client.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
  await client.readUntil("no");
  await client.write(Buffer.alloc(1001));
  assert.equal((await client.collect()).length, 0);
});
