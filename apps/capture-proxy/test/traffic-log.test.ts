import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { waitUntil } from "@headworks/testkit";
import { pino } from "pino";
import { openLogOutput } from "#logging/log-output.ts";
import { systemClock } from "#clock.ts";
import { defaultDataPaths } from "#settings/data-paths.ts";
import { startProxyRig } from "./proxy-rig.ts";
import type { ProxyRig } from "./proxy-rig.ts";

type Line = Readonly<Record<string, unknown>> & { readonly msg: string };

interface LoggedRig extends AsyncDisposable {
  readonly rig: ProxyRig;
  /** Events of traffic so far. */
  readonly traffic: () => Line[];
  /** Everything that was written. */
  readonly text: () => string;
  /** Waits for the last event of so many answers. */
  readonly answered: (count: number) => Promise<void>;
}

async function start(debug: object, flags: Record<string, string> = {}): Promise<LoggedRig> {
  const written: string[] = [];
  const rig = await startProxyRig(flags, (dataDir) => {
    const output = openLogOutput({
      path: defaultDataPaths(dataDir).logFile,
      stream: { write: (line) => written.push(line), flushSync: () => undefined },
      hasColours: false,
      isJson: true,
      hasFile: true,
      clock: systemClock,
      reportProblem: (sentence) => assert.fail(sentence),
    });
    return { log: pino({ base: null }, output), logs: output };
  });
  await rig.api("PATCH", "/logs", { debug_logging: { enabled: true, ...debug } });
  const traffic = (): Line[] =>
    written.map((line) => JSON.parse(line) as Line).filter(({ target }) => target === "traffic");
  return {
    rig,
    traffic,
    text: () => written.join(""),
    answered: async (count) => {
      await waitUntil(() => traffic().filter(({ event }) => event === "response").length >= count);
      await waitUntil(async () => {
        const { traffic_events: events } = await rig.api<{ traffic_events: { waiting: number } }>("GET", "/logs");
        return events.waiting === 0;
      });
    },
    [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose](),
  };
}

test("at level summary a request and its answer have one line each, and nothing is logged once it is off", async () => {
  await using logged = await start({});
  const { rig } = logged;
  await rig.send({ method: "POST", path: "/a?token=hunter2&x=1", body: "hello" });
  await logged.answered(1);
  const [request, response, ...more] = logged.traffic();
  assert.deepEqual(more, []);
  const url = `http://127.0.0.1:${rig.originPort}/a?token=[REDACTED]&x=1`;
  assert.equal(request?.msg, `> POST ${url} HTTP/1.1`);
  assert.equal(response?.msg, `< 200 OK POST ${url}`);
  assert.deepEqual([response?.["sent"], response?.["received"], response?.["id"]], [5, 10, request?.["id"]]);
  assert.equal(typeof response?.["ms"], "number");
  assert.equal(request?.["headers"], undefined);
  await rig.api("PATCH", "/logs", { debug_logging: { enabled: false } });
  await rig.send({ path: "/quiet" });
  await rig.api("PATCH", "/logs", { debug_logging: { enabled: true } });
  await rig.send({ path: "/loud" });
  await logged.answered(2);
  assert.doesNotMatch(logged.text(), /quiet/);
});

test("at level headers all are there in order, except secret values", async () => {
  await using logged = await start({ level: "headers", redact_headers: ["authorization", "X-Mine"] });
  const { rig } = logged;
  rig.respond = (_seen, response) =>
    void response.writeHead(201, ["Set-Cookie", "a=1", "set-cookie", "b=2", "X-API-Key", "k"]).end("body");
  await rig.send({
    headers: { Authorization: "Bearer s3cret-token", "x-mine": "m", "X-Api-Key": "s3cret-key", cookie: "c=1" },
  });
  await logged.answered(1);
  const [request, response] = logged.traffic();
  const asked = new Map(request?.["headers"] as [string, string][]);
  assert.deepEqual(
    ["Authorization", "x-mine", "X-Api-Key", "cookie"].map((name) => asked.get(name)),
    ["[REDACTED]", "[REDACTED]", "[REDACTED]", "c=1"],
  );
  const answered = response?.["headers"] as [string, string][];
  assert.deepEqual(answered.slice(0, 3), [
    ["Set-Cookie", "a=1"],
    ["set-cookie", "b=2"],
    ["X-API-Key", "[REDACTED]"],
  ]);
  assert.doesNotMatch(logged.text(), /s3cret/);
});

test("by default credentials and cookies are hidden in headers", async () => {
  await using logged = await start({ level: "headers" });
  const { rig } = logged;
  rig.respond = (_seen, response) => void response.writeHead(200, { "set-cookie": "sid=s3cret" }).end();
  await rig.send({
    headers: { authorization: "Basic s3cret", cookie: "sid=s3cret", "proxy-authorization": "Basic s3cret" },
  });
  await logged.answered(1);
  assert.doesNotMatch(logged.text(), /s3cret/);
});

/** The body of a side as it was logged, and what was said of it. */
function bodyOf(lines: readonly Line[], side: "request" | "response"): { text: string; note: string; parts: number } {
  const own = lines.filter(({ event }) => event === `${side} body`);
  return {
    text: own.map(({ body }) => (typeof body === "string" ? body : "")).join(""),
    note: own[0]?.msg ?? "",
    parts: own.length,
  };
}

function withWrongChecksum(gzip: Buffer): Buffer {
  gzip.writeUInt32LE(1, gzip.length - 8);
  return gzip;
}

test("at level full bodies follow, decoded, cut at the limit, and what is no text is told in a line", async () => {
  const long = "grüße ".repeat(30_000);
  const cases: readonly {
    readonly name: string;
    readonly headers: Record<string, string>;
    readonly body: Buffer;
    readonly text: string;
    readonly note: RegExp;
  }[] = [
    {
      name: "plain",
      headers: { "content-type": "text/plain" },
      body: Buffer.from("a\r\nb\u001b[31m"),
      text: "a\r\nb\u001b[31m",
      note: /^< 9 bytes of text\/plain$/,
    },
    {
      name: "gzip",
      headers: { "content-type": "application/json", "content-encoding": "gzip" },
      body: gzipSync('{"a":1}'),
      text: '{"a":1}',
      note: /bytes of application\/json$/,
    },
    {
      name: "two codings",
      headers: { "content-type": "text/html", "content-encoding": "gzip, br" },
      body: brotliCompressSync(gzipSync("<p>")),
      text: "<p>",
      note: /bytes of text\/html$/,
    },
    {
      name: "latin-1",
      headers: { "content-type": "text/plain; charset=iso-8859-1" },
      body: Buffer.from("gr\xfc\xdfe", "latin1"),
      text: "grüße",
      note: /^< 5 bytes/,
    },
    { name: "no type", headers: {}, body: Buffer.from("words"), text: "words", note: /^< 5 bytes of an unnamed type$/ },
    {
      name: "no type, no text",
      headers: {},
      body: Buffer.from([0, 1, 2, 255]),
      text: "",
      note: /^< 4 bytes of an unnamed type, not text$/,
    },
    {
      name: "image",
      headers: { "content-type": "image/png" },
      body: randomBytes(2000),
      text: "",
      note: /^< 2,000 bytes of image\/png, not text$/,
    },
    {
      name: "unknown coding",
      headers: { "content-type": "text/plain", "content-encoding": "zz" },
      body: Buffer.from("x"),
      text: "x",
      note: /said to be coded as zz, as it came$/,
    },
    {
      name: "not in its coding",
      headers: { "content-type": "text/plain", "content-encoding": "gzip" },
      body: Buffer.from("not gzip at all"),
      text: "not gzip at all",
      note: /said to be coded as gzip, as it came$/,
    },
    {
      name: "damaged",
      headers: { "content-type": "text/plain", "content-encoding": "gzip" },
      body: withWrongChecksum(gzipSync("as far as it goes")),
      text: "as far as it goes",
      note: /, damaged$/,
    },
    {
      name: "long",
      headers: { "content-type": "text/plain; charset=utf-8" },
      body: Buffer.from(long),
      text: long,
      note: /^< 240,000 bytes of text\/plain$/,
    },
    {
      name: "spooled",
      headers: { "content-type": "text/plain" },
      body: Buffer.alloc(900_000, "x"),
      text: "x".repeat(900_000),
      note: /^< 900,000 bytes of text\/plain$/,
    },
    {
      name: "too long",
      headers: { "content-type": "text/plain" },
      body: Buffer.alloc(1_200_000, "x"),
      text: "x".repeat(1_000_000),
      note: /^< 1,200,000 bytes of text\/plain, cut$/,
    },
    {
      name: "bomb",
      headers: { "content-type": "text/plain", "content-encoding": "gzip" },
      body: gzipSync(Buffer.alloc(50_000_000, "x")),
      text: "x".repeat(1_000_000),
      note: /, cut$/,
    },
  ];
  await using logged = await start({ level: "full" }, { "max-body-size": "1000000" });
  const { rig } = logged;
  let done = 0;
  for (const { name, headers, body, text, note } of cases) {
    rig.respond = (_seen, response) => void response.writeHead(200, headers).end(body);
    const from = logged.traffic().length;
    const { body: got } = await rig.send({ path: "/x" });
    assert.ok(got.equals(body), `${name} arrives as it was sent`);
    done += 1;
    await logged.answered(done);
    const shown = await waitUntil(
      () => {
        const found = bodyOf(logged.traffic().slice(from), "response");
        return found.text === text && found.note !== "" ? found : undefined;
      },
      { what: `the body ${name} in the log` },
    );
    assert.match(shown.note, note, name);
  }
  for (const line of logged.text().split("\n")) assert.doesNotMatch(line, /[\u0000-\u001f\u007f-\u009f\u2028]/);
});

test("the request's body is logged as it came, before the answer", async () => {
  await using logged = await start({ level: "full" });
  const { rig } = logged;
  await rig.send({ method: "POST", headers: { "content-type": "application/x-www-form-urlencoded" }, body: "a=1&b=2" });
  await logged.answered(1);
  const events = await waitUntil(() => {
    const names = logged.traffic().map(({ event }) => event);
    return names.length === 4 ? names : undefined;
  });
  assert.deepEqual(events, ["request", "request body", "response", "response body"]);
  assert.equal(bodyOf(logged.traffic(), "request").text, "a=1&b=2");
});

test("hidden bodies are told by size and type alone", async () => {
  await using logged = await start({ level: "full", redact_bodies: true });
  const { rig } = logged;
  rig.respond = (_seen, response) =>
    void response.writeHead(200, { "content-type": "text/plain" }).end("s3cret answer");
  await rig.send({ method: "POST", headers: { "content-type": "text/plain" }, body: "s3cret question" });
  await logged.answered(1);
  assert.equal(bodyOf(logged.traffic(), "request").note, "> 15 bytes of text/plain, [REDACTED]");
  assert.equal(bodyOf(logged.traffic(), "response").note, "< 13 bytes of text/plain, [REDACTED]");
  assert.doesNotMatch(logged.text(), /s3cret/);
});

test("the host filter decides by exact name, names below, and globs", async () => {
  await using logged = await start({ host_filter: ["other.test"] });
  const { rig } = logged;
  await rig.send({ path: "/no" });
  await rig.api("PATCH", "/logs", { debug_logging: { host_filter: ["*0.0*"] } });
  await rig.send({ path: "/yes" });
  await logged.answered(1);
  assert.deepEqual(
    logged.traffic().map(({ msg }) => /\/(?:yes|no)/.exec(msg)?.[0]),
    ["/yes", "/yes"],
  );
});

test("what is not recorded is not logged, and neither is anything above the verbosity asked for", async () => {
  await using logged = await start({});
  const { rig } = logged;
  await rig.api("PATCH", "/config", { ignored_domains: ["127.0.0.1"] });
  await rig.send({ path: "/ignored" });
  await rig.api("PATCH", "/config", { ignored_domains: [] });
  await rig.send({ path: "/seen" });
  await logged.answered(1);
  assert.doesNotMatch(logged.text(), /ignored"/);
});

test("a failure says its code, stage and reason", async () => {
  await using logged = await start({});
  const { rig } = logged;
  rig.respond = (_seen, response) => void response.socket?.destroy();
  await rig.send();
  await logged.answered(1);
  const [, response] = logged.traffic();
  assert.match(String(response?.["failure"]), /^UPSTREAM_/);
  assert.equal(typeof response?.["reason"], "string");
});

test("a flood costs memory up to a bound; what has no room is counted, and traffic is not held up", async () => {
  await using logged = await start({ level: "full" });
  const { rig } = logged;
  rig.respond = (_seen, response) =>
    void response.writeHead(200, { "content-type": "text/plain" }).end(Buffer.alloc(200_000, "x"));
  for (let at = 0; at < 5; at += 1) await Promise.all(Array.from({ length: 20 }, () => rig.send()));
  const { traffic_events: events } = await rig.api<{ traffic_events: { logged: number; dropped: number } }>(
    "GET",
    "/logs",
  );
  assert.equal(typeof events.dropped, "number");
  await logged.answered(100);
  const after = await rig.api<{ traffic_events: { logged: number; dropped: number; waiting: number } }>("GET", "/logs");
  assert.equal(after.traffic_events.logged + after.traffic_events.dropped, 300);
});
