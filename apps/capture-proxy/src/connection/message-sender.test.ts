import assert from "node:assert/strict";
import { test } from "node:test";
import type { Framing } from "@headworks/http1";
import { BandwidthLimiter, type ThrottledPace } from "#exchange/bandwidth-limiter.ts";
import type { BodyFilter, FilterReceiver } from "#exchange/body.ts";
import type { Failure } from "#exchange/failure.ts";
import type { Origin, OriginRequest, ResponseHandler } from "#upstream/origin.ts";
import { HeldBody, RequestSender, ResponseSender } from "./message-sender.ts";

test("all waiters for a body are resolved, each with its own limit", async () => {
  const body = new HeldBody({ kind: "chunked" }, false);
  let wanted = 0;
  const onWanted = (): void => void (wanted += 1);
  const small = body.content(4, false, onWanted);
  const large = body.content(100, false, onWanted);
  assert.equal(wanted, 2);
  assert.equal(body.add(Buffer.from("more than four")), true, "one of them still waits");
  assert.equal((await small).kind, "too-large");
  body.end();
  const content = await large;
  assert.equal(content.kind === "complete" && content.bytes.toString(), "more than four");
  assert.equal(body.isWanted, false);
});

/** Passes each piece in upper case when it is told to. */
class ManualFilter implements BodyFilter {
  readonly to: FilterReceiver;
  readonly pieces: Buffer[] = [];
  isDeciding = false;
  isBlocked = false;
  hasEnded = false;
  isClosed = false;

  constructor(to: FilterReceiver) {
    this.to = to;
  }

  get isEmpty(): boolean {
    return this.pieces.length === 0;
  }

  get isLow(): boolean {
    return this.pieces.length < 2;
  }

  add(piece: Buffer): void {
    this.pieces.push(piece);
  }

  pass(): void {
    const piece = this.pieces.shift();
    assert.ok(piece && !this.isBlocked);
    this.isBlocked = !this.to.take(Buffer.from(piece.toString().toUpperCase()));
    this.to.moved();
  }

  resume(): void {
    this.isBlocked = false;
  }

  end(): void {
    this.hasEnded = true;
  }

  close(): void {
    this.isClosed = true;
  }
}

/** An origin that notes what it gets. */
class NotingOrigin {
  readonly reportsUnprocessed = true;
  readonly written: string[] = [];
  hasRoom = true;

  send(): number {
    return 0;
  }

  sendData(piece: Buffer): void {
    this.written.push(piece.toString());
  }

  sendEnd(): void {
    this.written.push("end");
  }

  flush(): boolean {
    return this.hasRoom;
  }
}

interface RequestRig {
  readonly sender: RequestSender;
  readonly filters: ManualFilter[];
  readonly recorded: string[];
  readonly failures: Failure[];
  pace: ThrottledPace | undefined;
  moves: number;
  /** True: the request is complete. */
  send(origin: NotingOrigin, isRetry?: boolean): boolean;
}

function filteredRequest(framing: Framing = { kind: "chunked" }): RequestRig {
  const filters: ManualFilter[] = [];
  const recorded: string[] = [];
  const failures: Failure[] = [];
  const owner = {
    pace: undefined as ThrottledPace | undefined,
    fail: (failure: Failure) => void failures.push(failure),
    onRequestFiltered: (piece: Buffer) => void recorded.push(piece.toString()),
    onRequestMoved: () => void (rig.moves += 1),
  };
  const sender = new RequestSender(framing, owner);
  sender.filterBody((to) => {
    const filter = new ManualFilter(to);
    filters.push(filter);
    return filter;
  });
  const rig: RequestRig = {
    sender,
    filters,
    recorded,
    failures,
    moves: 0,
    get pace() {
      return owner.pace;
    },
    set pace(pace) {
      owner.pace = pace;
    },
    send: (origin, isRetry = false) =>
      sender.send(
        origin as unknown as Origin,
        undefined as unknown as ResponseHandler,
        {
          hasBody: true,
          isRetry,
        } as OriginRequest,
      ),
  };
  return rig;
}

const bytes = (text: string): Buffer => Buffer.from(text);

test("a filtered request ends after its last piece left the filter, held pieces first", () => {
  const rig = filteredRequest();
  const origin = new NotingOrigin();
  rig.sender.add(bytes("a"));
  assert.equal(rig.filters.length, 0, "the filter is opened when the request is sent");
  assert.equal(rig.send(origin), false);
  assert.equal(rig.sender.add(bytes("b")), false, "the filter is full");
  assert.equal(rig.sender.complete(), false);
  const [filter] = rig.filters;
  assert.deepEqual([filter?.hasEnded, origin.written], [true, []]);
  filter?.pass();
  assert.deepEqual([rig.sender.wantsMore, rig.sender.isReadyToEnd], [true, false]);
  filter?.pass();
  assert.deepEqual([rig.sender.isReadyToEnd, rig.moves], [true, 2]);
  rig.sender.end(undefined);
  assert.deepEqual(
    [origin.written, rig.recorded],
    [
      ["A", "B", "end"],
      ["A", "B"],
    ],
  );
  assert.equal(rig.sender.isReadyToEnd, false);
});

test("a filtered request whose body was held whole ends its filter when it is sent", () => {
  const rig = filteredRequest();
  rig.sender.add(bytes("a"));
  rig.sender.complete();
  const origin = new NotingOrigin();
  assert.equal(rig.send(origin), false);
  const [filter] = rig.filters;
  assert.equal(filter?.hasEnded, true);
  filter?.pass();
  assert.equal(rig.sender.isReadyToEnd, true);
});

test("the length of a filtered body is unknown, also of a replaced one; an empty body stays empty", () => {
  const { sender } = filteredRequest({ kind: "length", lengthBytes: 3 });
  assert.deepEqual(sender.framing, { kind: "chunked" });
  sender.add(bytes("abc"));
  sender.complete();
  sender.replace(bytes("longer"));
  assert.deepEqual(sender.framing, { kind: "chunked" });
  sender.replace(bytes(""));
  assert.deepEqual(sender.framing, { kind: "length", lengthBytes: 0 });
});

test("a retried request sends what left the filter, and passes the rest through the same filter", () => {
  const rig = filteredRequest();
  const [first, second] = [new NotingOrigin(), new NotingOrigin()];
  rig.send(first);
  for (const piece of ["a", "b", "c"]) rig.sender.add(bytes(piece));
  const [filter] = rig.filters;
  filter?.pass();
  assert.equal(rig.sender.isRepeatable, true);
  rig.sender.again();
  filter?.pass();
  assert.equal(filter?.isBlocked, true, "nothing more while there is no origin");
  rig.sender.add(bytes("d"));
  rig.sender.complete();
  rig.send(second, true);
  assert.equal(filter.isBlocked, false);
  filter.pass();
  filter.pass();
  assert.equal(rig.sender.isReadyToEnd, true);
  assert.deepEqual(
    [first.written, second.written, rig.recorded, rig.filters.length],
    [["A"], ["A", "B", "C", "D"], ["A", "B", "C", "D"], 1],
  );
});

test("the origin's backpressure reaches the filter, with and without a limited bandwidth", () => {
  const rig = filteredRequest();
  const origin = new NotingOrigin();
  origin.hasRoom = false;
  rig.send(origin);
  rig.sender.add(bytes("a"));
  const [filter] = rig.filters;
  filter?.pass();
  assert.equal(filter?.isBlocked, true);
  origin.hasRoom = true;
  rig.sender.resume();
  assert.equal(filter.isBlocked, false);

  const timers: (() => void)[] = [];
  let nowMs = 0;
  const clock = { monotonic: () => nowMs, after: (_delayMs: number, run: () => void) => (timers.push(run), () => {}) };
  const pace = { up: new BandwidthLimiter(clock), down: new BandwidthLimiter(clock) };
  pace.up.setRate(100_000);
  rig.pace = pace;
  rig.sender.add(bytes("x".repeat(40_000)));
  filter.pass();
  assert.equal(filter.isBlocked, true, "the limiter's queue is full");
  rig.sender.complete();
  assert.equal(rig.sender.isReadyToEnd, false);
  for (let turns = 0; turns < 1000 && !rig.sender.isReadyToEnd; turns += 1) {
    nowMs += 250;
    timers.shift()?.();
  }
  assert.equal(filter.isBlocked, false);
  assert.equal(rig.sender.isReadyToEnd, true);
  assert.equal(origin.written.join(""), `A${"X".repeat(40_000)}`);
});

test("a request that is not sent gives back what was held for its filter", () => {
  const rig = filteredRequest();
  rig.sender.add(bytes("a"));
  assert.deepEqual(rig.sender.removeFilter().map(String), ["a"]);
  assert.deepEqual([rig.sender.isFiltered, rig.sender.removeFilter()], [false, []]);
});

test("an exchange that ends closes its filter, and a defect in a filter ends its exchange", () => {
  const rig = filteredRequest();
  rig.send(new NotingOrigin());
  const [filter] = rig.filters;
  const defect = new Error("broken");
  filter?.to.failed(defect);
  assert.deepEqual([rig.failures[0]?.code, rig.failures[0]?.cause], ["INTERNAL", defect]);
  rig.sender.abandon();
  assert.equal(filter?.isClosed, true);
});

test("a filtered response ends after its last piece, and a response that replaces it is not filtered", () => {
  const written: string[] = [];
  const recorded: string[] = [];
  const filters: ManualFilter[] = [];
  const client = {
    sendHead: () => 0,
    sendData: (piece: Buffer) => void written.push(piece.toString()),
    sendEnd: () => void written.push("end"),
    flush: () => true,
  };
  const owner = {
    pace: undefined,
    fail: () => undefined,
    onResponseFiltered: (piece: Buffer) => void recorded.push(piece.toString()),
    onResponseMoved: () => undefined,
  };
  const open = (to: FilterReceiver): ManualFilter => {
    const filter = new ManualFilter(to);
    filters.push(filter);
    return filter;
  };
  const response = { status: 200, reason: "", version: "HTTP/2", fields: [], trailers: undefined } as const;
  const sender = new ResponseSender(client, "POST", owner);
  sender.framing = { kind: "chunked" };
  sender.filterBody(open);
  sender.add(bytes("a"));
  sender.start({ ...response, fields: [] });
  sender.add(bytes("b"));
  sender.complete();
  assert.equal(sender.isReadyToEnd, false);
  filters[0]?.pass();
  filters[0]?.pass();
  assert.equal(sender.isReadyToEnd, true);
  sender.end(undefined);
  assert.deepEqual(
    [written, recorded],
    [
      ["A", "B", "end"],
      ["A", "B"],
    ],
  );

  written.length = 0;
  const replaced = new ResponseSender(client, "POST", owner);
  replaced.framing = { kind: "chunked" };
  replaced.filterBody(open);
  replaced.add(bytes("a"));
  replaced.replaceAll(bytes("page"));
  replaced.start({ ...response, fields: [] });
  assert.deepEqual([written, replaced.isReadyToEnd, filters.length], [["page"], true, 1]);
});
