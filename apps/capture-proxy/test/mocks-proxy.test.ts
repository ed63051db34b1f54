import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import type { IncomingHttpHeaders } from "node:http2";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { gzipSync } from "node:zlib";
import { waitUntil } from "@headworks/testkit";
import type { MockHit } from "@headworks/capture-contract";
import { tunnelTo } from "./http2-rig.ts";
import { startMocksRig } from "./mocks-rig.ts";
import type { MocksRig } from "./mocks-rig.ts";

let rig: MocksRig;
before(async () => {
  rig = await startMocksRig();
});
after(async () => {
  await rig[Symbol.asyncDispose]();
});

/** Creates a rule for the duration of the test's work. */
async function withMock<T>(body: object, use: (id: string) => Promise<T>): Promise<T> {
  const id = await rig.mock(body);
  try {
    return await use(id);
  } finally {
    await rig.api("DELETE", `/mocks/${id}`);
  }
}

test("a mock responds for a nonexistent HTTPS host through CONNECT, and the entry names the rule", async () => {
  const rule = {
    name: "Nowhere",
    condition: { type: "host", pattern: "no-such-host.invalid" },
    response: { status_code: 201, headers: { "X-A": "1", "Set-Cookie": ["a=1", "b=2"] }, body: '{"ok":true}' },
  };
  await withMock(rule, async (id) => {
    const response = await rig.client.fetch("https://no-such-host.invalid/a?b=c");
    assert.deepEqual([response.status, response.body.toString()], [201, '{"ok":true}']);
    assert.equal(response.header("content-type"), "application/json");
    assert.equal(response.header("content-length"), "11");
    assert.deepEqual(
      response.headers.filter(([name]) => name === "Set-Cookie").map(([, value]) => value),
      ["a=1", "b=2"],
    );
    const entry = await waitUntil(async () => {
      const { json } = await rig.api("GET", "/traffic?host=no-such-host.invalid");
      return (json as { source: string; trace: { rule_id: string; changes: string[] }[] }[])[0];
    });
    assert.equal(entry.source, "slice");
    assert.deepEqual(
      entry.trace.map(({ rule_id: ruleId, changes }) => [ruleId, changes]),
      [[id, ["answered with 201"]]],
    );
  });
});

test("a header value beyond Latin-1 reaches clients of HTTP/1 and of HTTP/2 as UTF-8", async () => {
  await using own = await startMocksRig({ "enable-h2-downstream": "true" });
  await own.mock({
    name: "Wide",
    condition: { type: "host", pattern: "wide.invalid" },
    response: { headers: { "X-M": "€", "X-L": "é" }, body: "wide" },
  });
  const response = await own.client.fetch("https://wide.invalid/");
  const seen = [response.status, response.header("x-m"), response.header("x-l")];
  assert.deepEqual(seen, [200, Buffer.from("€").toString("latin1"), "é"]);
  const socket = await tunnelTo({ port: Number(new URL(own.proxy.addresses.proxy).port) }, "wide.invalid:443");
  const ca = readFileSync(own.proxy.certificatePath, "utf8");
  const secure = connectTls({ socket, servername: "wide.invalid", ca, ALPNProtocols: ["h2"] });
  await once(secure, "secureConnect");
  const session = connectHttp2("https://wide.invalid", { createConnection: () => secure });
  const [fields] = (await once(session.request({ ":path": "/" }), "response")) as [IncomingHttpHeaders];
  session.destroy();
  assert.deepEqual([fields[":status"], fields["x-m"], fields["x-l"]], seen);
});

test("requests without a matching rule reach their origin", async () => {
  await withMock(
    { name: "n", condition: { type: "path_pattern", pattern: "^/mocked$" }, response: { body: "mock" } },
    async () => {
      assert.deepEqual(await rig.get(`${rig.origin.url}/mocked`), { status: 200, text: "mock" });
      assert.deepEqual(await rig.get(`${rig.origin.url}/other`), { status: 200, text: "from the origin" });
      assert.deepEqual(
        rig.origin.requests.map(({ url }) => url),
        ["/other"],
      );
    },
  );
});

test("a mock made from a response to HEAD announces the recorded length", async () => {
  const handler = rig.handler;
  rig.handler = (_request, response) => void response.writeHead(200, { "content-length": "15" }).end();
  const ask = { method: "HEAD", url: `${rig.origin.url}/head` };
  const lengths = async (): Promise<(string | undefined)[]> => {
    const response = await rig.client.fetch(ask);
    return [response.header("content-length"), response.body.toString()];
  };
  assert.deepEqual(await lengths(), ["15", ""]);
  const entry = await waitUntil(async () => {
    const { json } = await rig.api("GET", "/traffic?q=path:/head");
    return (json as { id: string; state: string }[]).find(({ state }) => state === "complete");
  });
  const { json } = await rig.api("POST", "/mocks/from-traffic", { entry_ids: [entry.id] });
  const { ids } = json as { ids: string[] };
  const asked = rig.origin.requests.length;
  assert.deepEqual(await lengths(), ["15", ""]);
  assert.equal(rig.origin.requests.length, asked, "the mock answers");
  await rig.api("DELETE", `/mocks/${ids[0]}`);
  rig.handler = handler;
});

test("responses without content, to HEAD and pipelined on one connection are framed correctly", async () => {
  const path = (pattern: string) => ({ type: "path_pattern", pattern });
  const config = {
    type: "conditional",
    conditions: [204, 205, 304].map((status) => ({
      condition: { type: "header_equals", name: "X-Status", value: String(status) },
      response: { status_code: status, body: "must not appear" },
    })),
    default_response: { body: "twelve chars", headers: { "X-B": "2" } },
  };
  await withMock({ name: "n", condition: path("^/s$"), response_config: config }, async () => {
    const connection = await rig.client.secureTunnel("nowhere.invalid", 443);
    const head = "Host: nowhere.invalid\r\n";
    await connection.write(
      [204, 205, 304].map((status) => `GET /s HTTP/1.1\r\n${head}X-Status: ${status}\r\n\r\n`).join("") +
        `HEAD /s HTTP/1.1\r\n${head}\r\nGET /s HTTP/1.1\r\n${head}Connection: close\r\n\r\n`,
    );
    const text = (await connection.collect()).toString("latin1");
    const heads = text.split("\r\n\r\n");
    assert.deepEqual(
      heads.slice(0, 5).map((each) => [each.split("\r\n")[0], /content-length: (\d+)/i.exec(each)?.[1]]),
      [
        ["HTTP/1.1 204 No Content", undefined],
        ["HTTP/1.1 205 Reset Content", "0"],
        ["HTTP/1.1 304 Not Modified", undefined],
        ["HTTP/1.1 200 OK", "12"],
        ["HTTP/1.1 200 OK", "12"],
      ],
    );
    assert.equal(heads[5], "twelve chars");
    assert.equal(heads.length, 6);
  });
});

test("request bodies decide rules and fill templates: compressed, chunked and up to the limit", async () => {
  const rule = {
    name: "echo",
    condition: { type: "json_path", path: "$.user.id", value: 7 },
    response: { body: "hello {{request.body.user.name}}", template_enabled: true },
  };
  await withMock(rule, async () => {
    const body = JSON.stringify({ user: { id: 7, name: "Ann", pad: "x".repeat(200_000) } });
    const url = `${rig.origin.url}/json`;
    const headers: [string, string][] = [["Content-Type", "application/json"]];
    assert.equal((await rig.get({ method: "POST", url, headers, body })).text, "hello Ann");
    const gzip: [string, string][] = [...headers, ["Content-Encoding", "gzip"]];
    assert.equal((await rig.get({ method: "POST", url, headers: gzip, body: gzipSync(body) })).text, "hello Ann");
    const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    const coded: [string, string][] = [...headers, ["Transfer-Encoding", "chunked"]];
    assert.equal((await rig.get({ method: "POST", url, headers: coded, body: chunked })).text, "hello Ann");
    assert.equal((await rig.get({ method: "POST", url, headers, body: '{"user":{"id":8}}' })).text, "from the origin");
    assert.equal((await rig.get(url)).text, "from the origin");
  });
});

test("a sequence responds in order to concurrent requests, and counts them", async () => {
  const responses = Array.from({ length: 20 }, (_, index) => ({ body: String(index), delay_ms: (index * 7) % 20 }));
  const rule = {
    name: "s",
    condition: { type: "path_pattern", pattern: "^/seq$" },
    response_config: { type: "sequence", responses },
  };
  await withMock(rule, async (id) => {
    const responses = await Promise.all(Array.from({ length: 20 }, () => rig.get("http://nowhere.invalid/seq")));
    assert.deepEqual(
      responses.map(({ text }) => Number(text)).toSorted((a, b) => a - b),
      Array.from({ length: 20 }, (_, index) => index),
    );
    assert.equal((await rig.rule(id)).hit_count, 20);
    assert.equal((await rig.get("http://nowhere.invalid/seq")).text, "0");
    const config = (await rig.rule(id)).response_config;
    assert.equal(config.type === "sequence" && config.current_index, 1);
    const history = (await rig.api("GET", `/mocks/${id}/history?limit=5`)).json as MockHit[];
    assert.deepEqual(
      [history.length, history[0]?.response_index, history[0]?.request_url],
      [5, 0, "http://nowhere.invalid/seq"],
    );
    const stats = (await rig.api("GET", `/mocks/${id}/analytics`)).json as {
      total_hits: number;
      max_response_time_ms: number;
    };
    assert.equal(stats.total_hits, 21);
    assert.ok(stats.max_response_time_ms >= 18, String(stats.max_response_time_ms));
  });
});

test("a rule with a hit limit responds exactly that often, and again after it was re-enabled", async () => {
  const rule = {
    name: "h",
    condition: { type: "path_pattern", pattern: "^/limited$" },
    response: { body: "mock", delay_ms: 5 },
    expiration: { type: "hit_count", max_hits: 3 },
  };
  await withMock(rule, async (id) => {
    const url = `${rig.origin.url}/limited`;
    const ask = async () => {
      const responses = await Promise.all(Array.from({ length: 6 }, () => rig.get(url)));
      return responses.filter(({ text }) => text === "mock").length;
    };
    assert.equal(await ask(), 3);
    assert.equal((await rig.rule(id)).expired, true);
    await rig.api("POST", `/mocks/${id}/toggle`, { enabled: false });
    await rig.api("POST", `/mocks/${id}/toggle`, { enabled: true });
    assert.equal((await rig.rule(id)).expired, false);
    assert.equal(await ask(), 3);
  });
});

test("a body comes from a file below the data directory or a configured one, with its current content", async () => {
  const own = join(rig.dataDir, "mock-bodies");
  const other = join(rig.dataDir, "elsewhere");
  for (const directory of [own, other]) mkdirSync(directory, { recursive: true });
  writeFileSync(join(own, "a.json"), '{"n":1}');
  writeFileSync(join(other, "b.txt"), "other");
  const rule = (file: string) => ({
    name: "f",
    condition: { type: "path_pattern", pattern: "^/file$" },
    response: { body_file: file },
  });
  await withMock(rule("a.json"), async () => {
    const response = await rig.client.fetch("https://nowhere.invalid/file");
    assert.deepEqual([response.body.toString(), response.header("content-type")], ['{"n":1}', "application/json"]);
    writeFileSync(join(own, "a.json"), '{"n":2}');
    assert.equal((await rig.get("https://nowhere.invalid/file")).text, '{"n":2}');
  });
  await withMock(rule(join(other, "b.txt")), async () => {
    assert.equal((await rig.get("https://nowhere.invalid/file")).status, 500);
    assert.equal((await rig.api("PATCH", "/config", { mock_body_dirs: [other] })).status, 200);
    assert.equal((await rig.get("https://nowhere.invalid/file")).text, "other");
    await rig.api("PATCH", "/config", { mock_body_dirs: [] });
  });
  for (const file of ["../weir.db", "../certs/weir-ca-key.pem", "/etc/passwd"]) {
    await withMock(rule(file), async () => {
      const { status, text } = await rig.get("https://nowhere.invalid/file");
      assert.equal(status, 500, text.slice(0, 100));
    });
  }
});

test("a client disconnect during a delay does not affect the next request", async () => {
  await withMock(
    { name: "d", condition: { type: "path_pattern", pattern: "^/slow$" }, response: { body: "late", delay_ms: 60 } },
    async (id) => {
      const connection = await rig.client.connect();
      await connection.write("GET http://nowhere.invalid/slow HTTP/1.1\r\nHost: nowhere.invalid\r\n\r\n");
      await waitUntil(async () => (await rig.rule(id)).hit_count === 1);
      connection.destroy();
      assert.equal((await rig.get("http://nowhere.invalid/slow")).text, "late");
    },
  );
});

test("rules survive a restart, with their counts and sequence index", async () => {
  const responses = [{ body: "1" }, { body: "2" }, { body: "3" }];
  const rule = {
    name: "s",
    condition: { type: "path_pattern", pattern: "^/kept$" },
    response_config: { type: "sequence", responses },
  };
  const first = await startMocksRig();
  try {
    const id = await first.mock(rule);
    for (const expected of ["1", "2"]) assert.equal((await first.get("http://nowhere.invalid/kept")).text, expected);
    await first.proxy.stop(0);
    const second = await startMocksRig({}, first.dataDir);
    assert.equal((await second.rule(id)).hit_count, 2);
    assert.equal((await second.get("http://nowhere.invalid/kept")).text, "3");
    assert.equal(((await second.api("GET", "/mocks/analytics")).json as MockHit[]).length, 3);
    await second[Symbol.asyncDispose]();
  } finally {
    await first[Symbol.asyncDispose]();
  }
});
