import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, constants, type ClientHttp2Session, type IncomingHttpHeaders } from "node:http2";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { startOrigin, startRawServer, waitUntil } from "@headworks/testkit";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";
import { errorOf, proxied, responding } from "./route-documents.ts";

/** Runs `use` with an HTTP/2 connection that is closed behind it. */
async function over(gateway: TestGateway, use: (session: ClientHttp2Session) => Promise<void>): Promise<void> {
  const session = connect(`http://127.0.0.1:${gateway.port()}`);
  try {
    await use(session);
  } finally {
    session.destroy();
  }
}

interface Response {
  readonly headers: IncomingHttpHeaders & { readonly ":status"?: number };
  readonly body: Buffer;
}

async function ask(
  session: ClientHttp2Session,
  headers: Record<string, string>,
  pieces?: AsyncIterable<string>,
): Promise<Response> {
  const stream = session.request({ ":path": "/", ...headers }, { endStream: pieces === undefined });
  const answered = once(stream, "response");
  const body: Buffer[] = [];
  stream.on("data", (piece: Buffer) => body.push(piece));
  const ended = once(stream, "end");
  if (pieces !== undefined) {
    for await (const piece of pieces) if (!stream.destroyed && stream.writable) stream.write(piece);
    if (stream.writable) stream.end();
  }
  const [received] = (await answered) as [Response["headers"]];
  await ended;
  return { headers: received, body: Buffer.concat(body) };
}

test("limits over HTTP/2: a streamed body over the limit is 413, and the connection serves other requests", async () => {
  await using upstream = await startRawServer(
    async (connection) => void (await connection.collect().catch(() => undefined)),
  );
  await using gateway = await startGateway({
    ...serving("api", [upstream.port]),
    routes: [proxied("api", "/", { limits: { max_body_bytes: 10 } }), responding("r", "/r")],
  });
  async function* pieces(): AsyncGenerator<string> {
    yield "01234567";
    await waitUntil(() => upstream.connections.length === 1);
    yield "890";
  }
  await over(gateway, async (session) => {
    const response = await ask(session, { ":method": "POST" }, pieces());
    assert.deepEqual([response.headers[":status"], errorOf(response).code], [413, "request_body_too_large"]);
    assert.equal((await ask(session, { ":path": "/r" })).headers[":status"], 200);
  });
});

test("compression, cors and rate limits over HTTP/2 are what they are over HTTP/1", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) =>
      void response.writeHead(200, { "Content-Type": "text/plain" }).end("x".repeat(50_000)),
  });
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    policies: [{ name: "p", rate_limits: [{ selector: ["route"], requests_per: { hour: 1 } }] }],
    routes: [
      proxied("api", "/", {
        compression: { algorithms: ["gzip"] },
        cors: { allowed_origins: ["https://a.test"] },
        policies: ["p"],
      }),
    ],
  });
  await over(gateway, async (session) => {
    const headers = { origin: "https://a.test", "accept-encoding": "gzip" };
    const preflight = await ask(session, { ...headers, ":method": "OPTIONS", "access-control-request-method": "GET" });
    assert.deepEqual(
      [preflight.headers[":status"], preflight.headers["access-control-allow-origin"]],
      [204, "https://a.test"],
    );
    const response = await ask(session, headers);
    assert.deepEqual(
      ["content-encoding", "vary", "access-control-allow-origin", "x-ratelimit-remaining"].map(
        (name) => response.headers[name],
      ),
      ["gzip", "Accept-Encoding, Origin", "https://a.test", "0"],
    );
    assert.equal(gunzipSync(response.body).length, 50_000);
    assert.equal((await ask(session, headers)).headers[":status"], 429);
  });
});

test("admission over HTTP/2: a stream that is reset while it waits gives its place back", async () => {
  await using origin = await startOrigin({ handler: () => undefined });
  await using gateway = await startGateway({
    max_concurrent_requests: 1,
    admission_queue: { enabled: true, max_queue_size: 2, queue_timeout_ms: 10_000 },
    ...serving("api", [origin.port]),
    routes: [proxied("api", "/slow"), responding("r", "/r")],
  });
  const active = async (): Promise<string | undefined> =>
    /^active_requests (\d+)$/m.exec((await gateway.send({ path: "/metrics" })).body.toString())?.[1];
  await over(gateway, async (session) => {
    const open = (path: string): ReturnType<ClientHttp2Session["request"]> => {
      const stream = session.request({ ":path": path });
      stream.on("error", () => undefined);
      return stream;
    };
    const running = open("/slow");
    await waitUntil(() => origin.requests.length === 1);
    const waiting = open("/slow");
    await waitUntil(async () => (await active()) === "3");
    waiting.close(constants.NGHTTP2_CANCEL);
    await waitUntil(async () => (await active()) === "2");
    running.close(constants.NGHTTP2_CANCEL);
    await waitUntil(async () => (await active()) === "1");
    assert.equal((await ask(session, { ":path": "/r" })).headers[":status"], 200);
    assert.equal(origin.requests.length, 1);
  });
});
