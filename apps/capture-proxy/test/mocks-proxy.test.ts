import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { proxyClient, temporaryDirectory, waitUntil } from "@headworks/testkit";
import type { ProxiedRequest, ProxyClient, TemporaryDirectory } from "@headworks/testkit";
import { pino } from "pino";
import { createProxy } from "#proxy.ts";
import type { RunningProxy } from "#proxy.ts";

let directory: TemporaryDirectory;
let proxy: RunningProxy;
let client: ProxyClient;

before(async () => {
  directory = await temporaryDirectory();
  proxy = await createProxy({
    dataDir: directory.path,
    environment: {},
    flags: { "proxy-port": "0", "api-port": "0" },
    log: pino({ level: "silent" }),
  });
  client = proxyClient(Number(new URL(proxy.addresses.proxy).port), {
    ca: readFileSync(proxy.certificatePath, "utf8"),
  });
});

after(async () => {
  await proxy.stop(0);
  await directory.remove();
});

async function api(method: string, path: string, body?: unknown): Promise<{ status: number; json: never }> {
  const response = await fetch(`${proxy.addresses.api}/api${path}`, {
    method,
    ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, json: (text === "" ? undefined : JSON.parse(text)) as never };
}

/** Makes a rule, and takes it away after the test's own work. */
async function withMock<T>(body: object, use: (id: string) => Promise<T>): Promise<T> {
  const { status, json } = await api("POST", "/mocks", body);
  assert.equal(status, 201, JSON.stringify(json));
  const { id } = json as { id: string };
  try {
    return await use(id);
  } finally {
    await api("DELETE", `/mocks/${id}`);
  }
}

async function get(request: string | ProxiedRequest) {
  const response = await client.fetch(request);
  return { status: response.status, text: response.body.toString(), response };
}

test("a mock answers an HTTPS host that does not exist, through CONNECT, and the entry says which rule did", async () => {
  const rule = {
    name: "Nowhere",
    condition: { type: "host", pattern: "no-such-host.invalid" },
    response: { status_code: 201, headers: { "X-A": "1", "Set-Cookie": ["a=1", "b=2"] }, body: '{"ok":true}' },
  };
  await withMock(rule, async (id) => {
    const { status, text, response } = await get("https://no-such-host.invalid/a?b=c");
    assert.equal(status, 201);
    assert.equal(text, '{"ok":true}');
    assert.equal(response.header("content-type"), "application/json");
    assert.equal(response.header("content-length"), "11");
    assert.deepEqual(
      response.headers.filter(([name]) => name === "Set-Cookie").map(([, value]) => value),
      ["a=1", "b=2"],
    );
    const entry = await waitUntil(async () => {
      const { json } = await api("GET", "/traffic?host=no-such-host.invalid");
      return (json as { source: string; trace: { rule_id: string; changes: string[] }[] }[])[0];
    });
    assert.equal(entry.source, "slice");
    assert.deepEqual(
      entry.trace.map(({ rule_id: ruleId, changes }) => [ruleId, changes]),
      [[id, ["answered with 201"]]],
    );
  });
});
