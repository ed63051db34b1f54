import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Stream, constants, type ServerHttp2Stream } from "node:http2";
import { test } from "node:test";
import { startHttp2Origin, waitUntil } from "@headworks/testkit";
import { BandwidthLimiter } from "#exchange/bandwidth-limiter.ts";
import type { BodyFilter, FilterReceiver } from "#exchange/body.ts";
import type { Exchange } from "#exchange/exchange.ts";
import { CONTINUE, type Interceptor, type Verdict } from "#exchange/phases.ts";
import { clientOf, http2Engine, startVersioned, valuesOf } from "./http2-rig.ts";

/** Sends each piece in upper case and twice, a turn later. */
class DoublingFilter implements BodyFilter {
  readonly #to: FilterReceiver;
  readonly #fails: boolean;
  #pieces: Buffer[] = [];
  #isBlocked = false;
  isDeciding = false;
  isClosed = false;

  constructor(to: FilterReceiver, fails = false) {
    this.#to = to;
    this.#fails = fails;
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0;
  }

  get isLow(): boolean {
    return this.#pieces.length < 3;
  }

  add(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#continue();
  }

  end(): void {}

  resume(): void {
    this.#isBlocked = false;
    this.#continue();
  }

  close(): void {
    this.isClosed = true;
    this.#pieces = [];
  }

  #continue(): void {
    if (this.isDeciding || this.#isBlocked || this.isEmpty) return;
    this.isDeciding = true;
    setImmediate(() => {
      this.isDeciding = false;
      const piece = this.#pieces.shift()?.toString("latin1").toUpperCase();
      if (piece === undefined) return;
      if (this.#fails) return this.#to.failed(new Error("broken"));
      this.#isBlocked = !this.#to.take(Buffer.from(piece + piece, "latin1"));
      this.#continue();
      this.#to.moved();
    });
  }
}

const BOTH: Omit<Interceptor, "name"> = {
  onRequestHead(exchange) {
    exchange.filterBody("request", (to) => new DoublingFilter(to));
    return CONTINUE;
  },
  onResponseHead(exchange) {
    exchange.filterBody("response", (to) => new DoublingFilter(to));
    return CONTINUE;
  },
};

/** Octets of the same value are doubled in any split. */
const doubled = (text: string): string => text.toUpperCase() + text.toUpperCase();

for (const [client, origin] of [
  ["1.1", "1.1"],
  ["1.1", "2"],
  ["2", "1.1"],
  ["2", "2"],
] as const) {
  const way = `from HTTP/${client} to HTTP/${origin}`;

  test(`filters change the length of both bodies, and trailers follow, ${way}`, async () => {
    await using server = await startVersioned(origin, ({ body }) => ({
      body: "b".repeat(body.length),
      fields: [["content-length", String(body.length)]],
      ...(origin === "2" && { trailers: [["x-sum", "1"]] as const }),
    }));
    await using proxy = await http2Engine({ rules: BOTH });
    await using peer = await clientOf(client, proxy, server.port);
    const { status, body, fields, trailers, code } = await peer.fetch({ method: "POST", body: "aaaa" });
    assert.deepEqual([status, body, code], [200, doubled("b".repeat(8)), 0]);
    assert.deepEqual(valuesOf(fields, "content-length"), []);
    assert.deepEqual(trailers, origin === "2" ? ["x-sum", "1"] : []);
    const [seen] = server.seen;
    assert.deepEqual([seen?.body, valuesOf(seen?.fields ?? [], "content-length")], [doubled("aaaa"), []]);
    const [exchange] = await proxy.waitFor(1);
    assert.deepEqual(
      [exchange?.requestBody.state, Buffer.concat(exchange?.requestBody.pieces ?? []).toString()],
      ["complete", doubled("aaaa")],
    );
    assert.equal(Buffer.concat(exchange?.responseBody.pieces ?? []).toString(), doubled("b".repeat(8)));
  });

  test(`large bodies pass filters, also on a limited line, ${way}`, async () => {
    await using server = await startVersioned(origin, ({ body }) => ({ body }));
    const clock = {
      monotonic: () => performance.now(),
      after: (delayMs: number, callback: () => void) => {
        const timer = setTimeout(callback, delayMs);
        return () => clearTimeout(timer);
      },
    };
    const pace = { up: new BandwidthLimiter(clock), down: new BandwidthLimiter(clock) };
    pace.up.setRate(20_000_000);
    pace.down.setRate(20_000_000);
    await using proxy = await http2Engine({
      rules: {
        ...BOTH,
        onRequestHead(exchange) {
          if (exchange.request.path === "/limited") exchange.pace = pace;
          exchange.filterBody("request", (to) => new DoublingFilter(to));
          return CONTINUE;
        },
      },
    });
    for (const path of ["/free", "/limited"]) {
      await using peer = await clientOf(client, proxy, server.port);
      const { body, code } = await peer.fetch({ method: "POST", path, body: "a".repeat(500_000) });
      assert.equal(code, 0);
      assert.ok(body === "A".repeat(2_000_000), `${body.length} bytes`);
    }
    assert.ok(pace.up.carriedBytes >= 1_000_000 && pace.down.carriedBytes >= 2_000_000);
  });

  test(`a request that a rule responds to is recorded as received, and a replaced response is not filtered, ${way}`, async () => {
    await using server = await startVersioned(origin, () => ({ body: "never" }));
    const later = { status: 203, fields: [], body: Buffer.from("own") };
    await using proxy = await http2Engine({
      interceptors: [
        { name: "scripts", ...BOTH },
        {
          name: "mocks",
          onRequestHead: ({ request }) =>
            request.path === "/request" ? { kind: "respond", response: { ...later, status: 202 } } : CONTINUE,
          onResponseHead: ({ request }) =>
            request.path === "/response" ? { kind: "respond", response: later } : CONTINUE,
        },
      ],
    });
    await using peer = await clientOf(client, proxy, server.port);
    const early = await peer.fetch({ method: "POST", path: "/request", body: "aaaa" });
    assert.deepEqual([early.status, early.body], [202, doubled("own")]);
    const late = await peer.fetch({ method: "POST", path: "/response", body: "aaaa" });
    assert.deepEqual([late.status, late.body], [203, "own"]);
    const finished = await proxy.waitFor(2);
    assert.deepEqual(
      finished.map(({ requestBody, responseBody }) =>
        [requestBody, responseBody].map(({ pieces }) => Buffer.concat(pieces).toString()),
      ),
      [
        ["aaaa", doubled("own")],
        [doubled("aaaa"), "own"],
      ],
    );
    assert.equal(server.seen.length, 1);
  });

  test(`a rule behind a filter may still await and replace the bodies, ${way}`, async () => {
    await using server = await startVersioned(origin, ({ body }) => ({ body: body.replaceAll("N", "m") }));
    await using proxy = await http2Engine({
      interceptors: [
        { name: "scripts", ...BOTH },
        {
          name: "breakpoints",
          async onRequestHead(exchange) {
            assert.equal((await exchange.requestContent(100)).kind, "complete");
            exchange.setRequestContent(Buffer.from("nn"));
            return CONTINUE;
          },
          async onResponseHead(exchange) {
            const content = await exchange.responseContent(100);
            assert.equal(content.kind === "complete" && content.bytes.toString(), "mmmm");
            return CONTINUE;
          },
        },
      ],
    });
    await using peer = await clientOf(client, proxy, server.port);
    const { body } = await peer.fetch({ method: "POST", body: "aaaa" });
    assert.equal(body, doubled("mmmm"));
    const [exchange] = await proxy.waitFor(1);
    assert.equal(Buffer.concat(exchange?.requestBody.pieces ?? []).toString(), doubled("nn"));
    assert.equal(Buffer.concat(exchange?.responseBody.pieces ?? []).toString(), doubled("mmmm"));
  });
}

/** Lets nothing pass. */
class HoldingFilter extends DoublingFilter {
  readonly added = Promise.withResolvers<void>();

  override get isEmpty(): boolean {
    return false;
  }

  override add(): void {
    this.added.resolve();
  }
}

for (const side of ["request", "response"] as const) {
  test(`the end of either side ends an exchange whose ${side} is held by a filter, and closes the filter`, async () => {
    const streams: ServerHttp2Stream[] = [];
    await using server = await startHttp2Origin((stream) => {
      streams.push(stream);
      stream.on("error", () => undefined);
      stream.respond({ ":status": 200 });
      stream.write("b");
    });
    const filters: HoldingFilter[] = [];
    const filterIt = (exchange: Exchange): Verdict => {
      exchange.filterBody(side, (to) => {
        const filter = new HoldingFilter(to);
        filters.push(filter);
        return filter;
      });
      return CONTINUE;
    };
    await using proxy = await http2Engine({
      rules: side === "request" ? { onRequestHead: filterIt } : { onResponseHead: filterIt },
    });
    await using client = await clientOf("2", proxy, server.port, { isPlain: true });
    for (const [at, reset] of [
      (request: ClientHttp2Stream) => {
        request.close(constants.NGHTTP2_CANCEL);
      },
      () => {
        for (const session of server.sessions) session.destroy();
      },
    ].entries()) {
      const request = client.session?.request({ ":method": "POST", ":path": "/" }, { endStream: false });
      assert.ok(request);
      request.on("error", () => undefined);
      request.resume();
      request.write("a");
      await once(request, "response");
      await waitUntil(() => filters.length === at + 1);
      await filters[at]?.added.promise;
      const closed = new Promise((resolve) => request.once("close", resolve));
      reset(request);
      await closed;
      const finished = await proxy.waitFor(at + 1);
      const { state } = finished[at] ?? {};
      assert.deepEqual(
        [state?.step === "failed" && state.failure.code, filters[at]?.isClosed],
        [at === 0 ? "CLIENT_ABORTED" : "UPSTREAM_CLOSED", true],
      );
      await waitUntil(() => streams[at]?.closed === true);
    }
    assert.equal(proxy.services.gauges.activeExchanges, 0);
  });
}

test("a filter that fails ends its exchange alone, and is closed", async () => {
  await using server = await startVersioned("2", ({ body }) => ({ body }));
  const filters: DoublingFilter[] = [];
  await using proxy = await http2Engine({
    rules: {
      onRequestHead(exchange) {
        exchange.filterBody("request", (to) => {
          const filter = new DoublingFilter(to, exchange.request.path === "/broken");
          filters.push(filter);
          return filter;
        });
        return CONTINUE;
      },
    },
  });
  await using client = await clientOf("2", proxy, server.port);
  const broken = await client.fetch({ method: "POST", path: "/broken", body: "a" });
  assert.equal(broken.status, 500);
  assert.equal((await client.fetch({ method: "POST", path: "/well", body: "a" })).body, "AA");
  const [exchange] = await proxy.waitFor(2);
  assert.equal(exchange?.state.step === "failed" && exchange.state.failure.code, "INTERNAL");
  assert.deepEqual(
    filters.map(({ isClosed }) => isClosed),
    [true, true],
  );
});
