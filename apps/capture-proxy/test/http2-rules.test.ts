import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { test } from "node:test";
import { setField } from "@headworks/http1";
import { BandwidthLimiter } from "#exchange/bandwidth-limiter.ts";
import { CONTINUE } from "#exchange/phases.ts";
import { clientOf, http2Engine, startVersioned, tunnelTo, valuesOf } from "./http2-rig.ts";

const PAIRS = [
  ["1.1", "2"],
  ["2", "1.1"],
  ["2", "2"],
] as const;

for (const [client, origin] of PAIRS) {
  const way = `from HTTP/${client} to HTTP/${origin}`;

  test(`rules wait for both bodies and replace them, ${way}`, async () => {
    await using server = await startVersioned(origin, ({ body }) => ({
      body: `echo ${body}`,
      fields: [["content-length", String(5 + body.length)]],
      trailers: [["x-sum", "of the old body"]],
    }));
    await using proxy = await http2Engine({
      rules: {
        async onRequestHead(exchange) {
          const content = await exchange.requestContent(100_000);
          assert.equal(content.kind, "complete");
          const request = exchange.changeRequest();
          request.path = "/moved";
          setField(request.fields, "X-By-Rule", "yes");
          exchange.setRequestContent(Buffer.from(`${content.bytes.toString()} and more`));
          return CONTINUE;
        },
        async onResponseHead(exchange) {
          const content = await exchange.responseContent(100_000);
          assert.equal(content.kind, "complete");
          exchange.changeResponse().status = 202;
          exchange.setResponseContent(Buffer.from(content.bytes.toString().toUpperCase()));
          return CONTINUE;
        },
      },
    });
    await using peer = await clientOf(client, proxy, server.port);
    const { status, body, fields, code } = await peer.fetch({ method: "POST", body: "text" });
    assert.deepEqual([status, body, code], [202, "ECHO TEXT AND MORE", 0]);
    assert.deepEqual(valuesOf(fields, "content-length"), ["18"]);
    const [seen] = server.seen;
    assert.deepEqual(
      [seen?.path, seen?.body, valuesOf(seen?.fields ?? [], "x-by-rule")],
      ["/moved", "text and more", ["yes"]],
    );
    const [exchange] = await proxy.waitFor(1);
    assert.equal(exchange?.originalRequest?.message.path, "/");
    assert.equal(exchange.originalRequest.body?.toString(), "text");
    assert.equal(exchange.originalResponse?.message.status, 200);
  });

  test(`a rule that takes its time holds the messages and nothing else, ${way}`, async () => {
    await using server = await startVersioned(origin, ({ path }) => ({ body: path.repeat(10_000) }));
    const held = Promise.withResolvers<void>();
    await using proxy = await http2Engine({
      rules: {
        async onResponseHead({ request }) {
          if (request.path === "/held") await held.promise;
          return CONTINUE;
        },
      },
    });
    await using one = await clientOf(client, proxy, server.port);
    await using other = client === "2" ? one : await clientOf(client, proxy, server.port);
    const late = one.fetch({ path: "/held" });
    assert.equal((await other.fetch({ path: "/free" })).body, "/free".repeat(10_000));
    held.resolve();
    assert.equal((await late).body, "/held".repeat(10_000));
  });

  test(`a limited line paces both bodies, ${way}`, async () => {
    await using server = await startVersioned(origin, ({ body }) => ({ body }));
    const clock = { monotonic: () => performance.now(), after: later };
    const pace = { up: new BandwidthLimiter(clock), down: new BandwidthLimiter(clock) };
    pace.up.setRate(2_000_000);
    pace.down.setRate(2_000_000);
    await using proxy = await http2Engine({
      rules: {
        onRequestHead(exchange) {
          exchange.pace = pace;
          return CONTINUE;
        },
      },
    });
    await using peer = await clientOf(client, proxy, server.port);
    const body = "0123456789".repeat(20_000);
    const startedMs = performance.now();
    const received = await peer.fetch({ method: "POST", body });
    assert.equal(received.body, body);
    assert.ok(performance.now() - startedMs > 150);
    assert.ok(pace.up.carriedBytes >= body.length && pace.down.carriedBytes >= body.length);
  });
}

for (const [client, origin] of [["1.1", "1.1"], ...PAIRS] as const) {
  test(`a replaced body neither announces nor brings the trailers of the old one, from HTTP/${client} to HTTP/${origin}`, async () => {
    const trailers = [["x-sum", "of the old body"]] as const;
    const fields = [["trailer", "x-sum"]] as const;
    await using server = await startVersioned(origin, () => ({ body: "old", fields, trailers }));
    await using proxy = await http2Engine({
      rules: {
        async onRequestHead(exchange) {
          await exchange.requestContent(100_000);
          if (exchange.request.path === "/replaced") exchange.setRequestContent(Buffer.from("new"));
          return CONTINUE;
        },
        async onResponseHead(exchange) {
          await exchange.responseContent(100_000);
          if (exchange.request.path === "/replaced") exchange.setResponseContent(Buffer.from("new"));
          return CONTINUE;
        },
      },
    });
    await using peer = await clientOf(client, proxy, server.port);
    for (const [path, body, announced, brought] of [
      ["/kept", "old", ["x-sum"], ["x-sum", "of the old body"]],
      ["/replaced", "new", [], []],
    ] as const) {
      const received = await peer.fetch({ path, method: "POST", body: "old", fields, trailers });
      const seen = server.seen.at(-1);
      assert.deepEqual(
        [received.body, valuesOf(received.fields, "trailer"), received.trailers],
        [body, announced, brought],
      );
      assert.deepEqual(
        [seen?.body, valuesOf(seen?.fields ?? [], "trailer"), seen?.trailers],
        [body, announced, brought],
      );
    }
  });
}

function later(delayMs: number, callback: () => void): () => void {
  const timer = setTimeout(callback, delayMs);
  return () => clearTimeout(timer);
}

test("over HTTP/2 a rule answers, refuses with a page, or ends the stream without a word", async () => {
  await using server = await startVersioned("2", () => ({ body: "never" }));
  await using proxy = await http2Engine({
    rules: {
      onRequestHead({ request }) {
        const response = { status: 418, fields: ["X-Mock", "1", "Content-Length", "3"], body: Buffer.from("tea") };
        if (request.path === "/mock") return { kind: "respond", response };
        return { kind: "abort", reason: "not today", closes: request.path === "/cut" };
      },
    },
  });
  await using client = await clientOf("2", proxy, server.port);
  const mocked = await client.fetch({ path: "/mock", method: "POST", body: "x".repeat(100_000) });
  assert.deepEqual([mocked.status, mocked.body, valuesOf(mocked.fields, "x-mock")], [418, "tea", ["1"]]);
  const head = await client.fetch({ path: "/mock", method: "HEAD" });
  assert.deepEqual([head.status, head.body, head.code], [418, "", 0]);
  const refused = await client.fetch({ path: "/refused" });
  assert.equal(refused.status, 403);
  assert.match(refused.body, /not today/);
  const cut = await client.fetch({ path: "/cut" });
  assert.deepEqual([cut.status, cut.code > 0], [0, true]);
  assert.equal(server.seen.length, 0);
  const finished = await proxy.waitFor(4);
  assert.deepEqual(
    finished.map(({ request, response }) => [request.version, response?.version]),
    [
      ["HTTP/2", "HTTP/2"],
      ["HTTP/2", "HTTP/2"],
      ["HTTP/2", "HTTP/2"],
      ["HTTP/2", undefined],
    ],
  );
});

test("an answer of a rule to a body that never ends goes out, and the client is told to stop", async () => {
  await using server = await startVersioned("2", () => ({ body: "never" }));
  await using proxy = await http2Engine({
    rules: {
      onRequestHead: () => ({ kind: "respond", response: { status: 413, fields: [], body: Buffer.from("enough") } }),
    },
  });
  await using client = await clientOf("2", proxy, server.port);
  const stream = client.session?.request({ ":method": "POST", ":path": "/" }, { endStream: false });
  assert.ok(stream);
  stream.on("error", () => undefined);
  const push = (): void => {
    while (!stream.destroyed && !stream.closed && stream.write(Buffer.alloc(65_536)));
  };
  stream.on("drain", push);
  push();
  let status = 0;
  let text = "";
  stream.on("response", (headers) => (status = Number(headers[":status"])));
  stream.on("data", (piece: Buffer) => (text += piece.toString()));
  await new Promise((resolve) => stream.once("close", resolve));
  assert.deepEqual([status, text, stream.rstCode], [413, "enough", 0]);
});

test("the pages of the proxy itself are there over HTTP/2 as well", async () => {
  await using proxy = await http2Engine();
  const socket = await tunnelTo(proxy, "weir:80");
  const session = connectHttp2("http://weir", { createConnection: () => socket });
  const stream = session.request({ ":path": "/setup" });
  const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
  assert.equal(headers[":status"], 200);
  let text = "";
  for await (const piece of stream.setEncoding("utf8")) text += String(piece);
  assert.equal(text, "own page /setup");
  session.destroy();
});

for (const [client, origin] of PAIRS) {
  test(`a defect of ours fails one exchange and not the process, from HTTP/${client} to HTTP/${origin}`, async () => {
    await using server = await startVersioned(origin, ({ path }) => ({ body: path }));
    await using proxy = await http2Engine({
      rules: {
        onResponseHead({ request }) {
          // The pipeline of these tests passes it on, which that of the service would not.
          if (request.path === "/defect") throw new TypeError("a defect");
          return CONTINUE;
        },
      },
    });
    await using peer = await clientOf(client, proxy, server.port);
    const { status } = await peer.fetch({ path: "/defect" });
    assert.equal(status, 500);
    const [exchange] = await proxy.waitFor(1);
    assert.equal(exchange?.state.step, "failed");
    assert.equal(exchange.state.failure.code, "INTERNAL");
    await using other = await clientOf(client, proxy, server.port);
    assert.equal((await other.fetch({ path: "/fine" })).body, "/fine");
  });
}
