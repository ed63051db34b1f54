import assert from "node:assert/strict";
import { test } from "node:test";
import { rawClient, secure } from "@headworks/testkit";
import type { RawConnection } from "@headworks/testkit";
import { exchangeUrl } from "#exchange/exchange.ts";
import { startEngine } from "./engine-harness.ts";
import type { Engine } from "./engine-harness.ts";

/** TLS with the proxy, in a tunnel to a host that is never dialled. */
async function secureClient({ port, ca }: Engine, protocols?: string[]): Promise<RawConnection> {
  const client = await rawClient(port);
  await client.write("CONNECT mail.test:993 HTTP/1.1\r\nHost: mail.test:993\r\n\r\n");
  await client.readUntil("\r\n\r\n");
  const options = { servername: "mail.test", ca: ca.certificatePem };
  return await secure(client.detach(), protocols === undefined ? options : { ...options, ALPNProtocols: protocols });
}

const FOREIGN: readonly [what: string, bytes: string, response: RegExp][] = [
  ["says something that is not HTTP", "a001 CAPABILITY\r\n", /^$/],
  ["says what could become a request, and waits", "EHLO here.test\r\n", /^HTTP\/1\.1 408 /],
  ["waits for the server to speak", "", /^$/],
  ["speaks HTTP that cannot be read", "GET /\r\n\r\n", /^HTTP\/1\.1 400 /],
];
for (const [what, bytes, response] of FOREIGN) {
  test(`a client inside TLS that ${what} leaves an entry that names passthrough_domains`, async () => {
    const engine = await startEngine({ policy: { headTimeoutMs: 100 } });
    const client = await secureClient(engine);
    if (bytes !== "") await client.write(bytes);
    assert.match((await client.collect()).toString(), response);
    const [exchange] = await engine.waitFor(1);
    assert.ok(exchange?.state.step === "failed");
    const { stage, side, message } = exchange.state.failure;
    assert.deepEqual([stage, side], ["client-read", "client"]);
    assert.match(message, /list mail\.test under passthrough_domains$/);
    assert.deepEqual([exchange.request.method, exchangeUrl(exchange.request)], ["CONNECT", "tcp://mail.test:993/"]);
    assert.deepEqual(exchange.request.fields, ["Host", "mail.test:993"]);
    assert.equal(engine.finished.length, 1);
    client.destroy();
    await engine.stop();
  });
}

test("a connection that was opened for HTTP and never used leaves no entry", async () => {
  const engine = await startEngine({ policy: { headTimeoutMs: 100 } });
  const client = await secureClient(engine, ["http/1.1"]);
  assert.equal((await client.collect()).toString(), "");
  assert.equal(engine.finished.length, 0);
  client.destroy();
  await engine.stop();
});
