import assert from "node:assert/strict";
import { test } from "node:test";
import { FRAME, frame, HPACK_CASES, HTTP2_CASES, HTTP2_RESPONSE_CASES, request } from "@headworks/testkit";
import { data, heads, pattern, resetOf } from "../test/raw-peer.ts";
import { requestedRaw, both, OK, servedRaw } from "../test/session-rig.ts";
import type { StreamRecorder } from "../test/stream-recorder.ts";
import {
  CANCEL,
  ENHANCE_YOUR_CALM,
  Http2Error,
  INTERNAL_ERROR,
  NO_ERROR,
  PROTOCOL_ERROR,
  REFUSED_STREAM,
} from "./codes.ts";

const BODY = pattern(300_000);
/** Checked by the handler of requests, not by the connection. */
const OF_REQUESTS = /^8\.[1235]|^RFC 8441|^10/;

/** Answers with 200 and what came, once all did. */
function echoes(recorder: StreamRecorder): void {
  recorder.onEnded = () => {
    recorder.stream.sendSection(OK, false);
    recorder.stream.write(recorder.body);
    recorder.stream.end();
  };
}

test("8.1: a request and its response come over whole, with trailers behind the bodies, and then it has ended", async () => {
  const { client, server } = await both();
  await using _client = client;
  await using _server = server;
  server.onStream = (recorder) => {
    recorder.onEnded = () => {
      recorder.stream.sendSection([...OK, "x-first", "1"], false);
      recorder.stream.write(recorder.body);
      recorder.stream.end(["x-sum", "2"]);
    };
  };
  const requested = client.ask(false, ["x-asked", "yes"]);
  requested.stream.write(BODY);
  requested.stream.end(["x-trailer", "3"]);
  assert.equal(await requested.code(), NO_ERROR);
  const served = await server.stream();
  assert.equal(await served.code(), NO_ERROR);
  assert.deepEqual(served.sections[0]?.slice(-2), ["x-asked", "yes"]);
  assert.deepEqual(served.trailers, ["x-trailer", "3"]);
  assert.deepEqual(requested.sections, [[...OK, "x-first", "1"]]);
  assert.deepEqual(requested.trailers, ["x-sum", "2"]);
  assert.ok(served.body.equals(BODY), "the request's body");
  assert.ok(requested.body.equals(BODY), "the answer's body");
  assert.deepEqual([...client.broken, ...server.broken], []);
  assert.deepEqual(
    requested.order.filter((what) => what !== "drain"),
    ["section", "data", "trailers", "end", "close"],
  );
});

test("8.1: sections that are whole have no end of their own", async () => {
  const { client, server } = await both();
  await using _client = client;
  await using _server = server;
  server.onStream = (recorder, _fields, isWhole) => {
    assert.ok(isWhole);
    recorder.stream.sendSection([":status", "204"], true);
  };
  const requested = client.ask(true);
  await requested.code();
  assert.deepEqual(requested.order, ["section", "close"]);
  assert.deepEqual((await server.stream()).order, ["section", "close"]);
});

test("8.1: interim responses are told as sections of their own, in order, before the one that counts", async () => {
  const { client, server } = await both();
  await using _client = client;
  await using _server = server;
  server.onStream = (recorder) => {
    recorder.stream.sendSection([":status", "100"], false);
    recorder.stream.sendSection([":status", "103", "link", "</a.css>"], false);
    recorder.stream.sendSection(OK, false);
    recorder.stream.end();
  };
  const requested = client.ask(true);
  assert.equal(await requested.code(), NO_ERROR);
  assert.deepEqual(
    requested.sections.map(([, status]) => status),
    ["100", "103", "200"],
  );
  assert.deepEqual(client.broken, []);
});

test("5: fifty requests at once do not mix", async () => {
  const { client, server } = await both();
  await using _client = client;
  await using _server = server;
  server.onStream = echoes;
  const bodies = Array.from({ length: 50 }, (_, at) => pattern(1 + at * 977, at));
  const requested = bodies.map((body) => {
    const recorder = client.ask(false);
    for (let at = 0; at < body.length; at += 5000) recorder.stream.write(body.subarray(at, at + 5000));
    recorder.stream.end();
    return recorder;
  });
  for (const [at, recorder] of requested.entries()) {
    assert.equal(await recorder.code(), NO_ERROR, `stream ${at}`);
    assert.ok(recorder.body.equals(bodies[at] ?? BODY), `body ${at}`);
  }
  assert.deepEqual([...client.broken, ...server.broken], []);
});

/** What a server says of stream 1, behind which a client tells these, in this order, and closes the stream with this. */
const RESPONSES: readonly (readonly [what: string, said: readonly Buffer[], order: string, code: number])[] = [
  ["a reset before the head (6.4)", [resetOf(1, CANCEL)], "close", CANCEL],
  ["a reset in the middle (6.4)", [heads(1, OK), data(1, "ab"), resetOf(1, CANCEL)], "section data close", CANCEL],
  ["an unknown code (7)", [heads(1, OK), resetOf(1, 0xfefe)], "section close", 0xfefe],
  [
    "NO_ERROR behind a whole answer while the request goes on (8.1)",
    [heads(1, OK), data(1, "ab", true), resetOf(1, NO_ERROR)],
    "section data end close",
    NO_ERROR,
  ],
  [
    "NO_ERROR before the end of an answer",
    [heads(1, OK), data(1, "ab"), resetOf(1, NO_ERROR)],
    "section data close",
    0,
  ],
  ["DATA before the head (8.1)", [data(1, "ab")], "close", PROTOCOL_ERROR],
  ["empty DATA with an end before the head (8.1)", [data(1, "", true)], "close", PROTOCOL_ERROR],
  [
    "DATA behind an interim answer (8.1)",
    [heads(1, [":status", "100"]), data(1, "a")],
    "section close",
    PROTOCOL_ERROR,
  ],
  ["an interim answer that ends (8.1)", [heads(1, [":status", "103"], true)], "close", PROTOCOL_ERROR],
  ["trailers without an end (8.1)", [heads(1, OK), heads(1, ["x", "y"])], "section close", PROTOCOL_ERROR],
  ["trailers with a status (8.1)", [heads(1, OK), heads(1, OK, true)], "section close", PROTOCOL_ERROR],
  ["a pseudo-field behind others (8.3)", [heads(1, ["x", "y", ":status", "200"])], "close", PROTOCOL_ERROR],
  ["a name in upper case (8.2.1)", [heads(1, [...OK, "X", "y"])], "close", PROTOCOL_ERROR],
  ["a value with a line break (8.2.1)", [heads(1, [...OK, "x", "y\r\nz: 1"])], "close", PROTOCOL_ERROR],
  ["a value with a zero (8.2.1)", [heads(1, [...OK, "x", "\0"])], "close", PROTOCOL_ERROR],
  ["a field of connections (8.2.2)", [heads(1, [...OK, "transfer-encoding", "chunked"])], "close", PROTOCOL_ERROR],
  [
    "more fields than are taken",
    [heads(1, [...OK, ...Array.from({ length: 200 }, (_, at) => `x${at >> 1}`)])],
    "close",
    PROTOCOL_ERROR,
  ],
];

for (const [what, said, order, code] of RESPONSES) {
  test(`a response with ${what} ends its stream with ${code}, and no other`, async () => {
    const { tested, peer } = await requestedRaw();
    await using _tested = tested;
    const first = tested.ask(false);
    const second = tested.ask(true);
    peer.send(...said, heads(3, OK), data(3, "fine", true));
    assert.equal(await first.code(), code);
    assert.equal(first.order.join(" "), order);
    assert.equal(await second.code(), NO_ERROR);
    assert.equal(second.body.toString(), "fine");
    assert.deepEqual(tested.broken, []);
  });
}

/** How a body compares to what was announced of it (8.1.1). */
const LENGTHS: readonly (readonly [
  what: string,
  bytes: number,
  said: readonly Buffer[],
  code: number,
  recorder: number,
])[] = [
  ["the same", 4, [data(1, "ab"), data(1, "cd", true)], NO_ERROR, 4],
  ["the same, before trailers", 4, [data(1, "abcd"), heads(1, ["x", "y"], true)], NO_ERROR, 4],
  ["none, as announced", 0, [data(1, "", true)], NO_ERROR, 0],
  ["a byte less", 4, [data(1, "abc", true)], PROTOCOL_ERROR, 3],
  ["a byte less, before trailers", 4, [data(1, "abc"), heads(1, ["x", "y"], true)], PROTOCOL_ERROR, 3],
  ["a byte more", 4, [data(1, "abcde", true)], PROTOCOL_ERROR, 0],
  ["a byte more in a frame of its own", 4, [data(1, "abcd"), data(1, "e")], PROTOCOL_ERROR, 4],
  ["some where none was announced", 0, [data(1, "a", true)], PROTOCOL_ERROR, 0],
  ["the same, and NO_ERROR in place of its end", 4, [data(1, "abcd"), resetOf(1, NO_ERROR)], NO_ERROR, 4],
  ["the same, and another code in place of its end", 4, [data(1, "abcd"), resetOf(1, CANCEL)], CANCEL, 4],
  ["a byte less, and NO_ERROR in place of its end", 4, [data(1, "abc"), resetOf(1, NO_ERROR)], NO_ERROR, 3],
];

for (const [what, bytes, said, code, recorder] of LENGTHS) {
  test(`8.1.1: a body of ${bytes} bytes of which comes ${what}: ${code}`, async () => {
    const { tested, peer } = await requestedRaw();
    await using _tested = tested;
    const requested = tested.ask(true);
    requested.onHead = () => requested.stream.announce(bytes);
    peer.send(heads(1, OK), ...said);
    assert.equal(await requested.code(), code);
    assert.equal(requested.dataBytes, recorder);
    const isComplete = code === NO_ERROR && recorder === bytes;
    assert.equal(requested.order.includes("end"), isComplete, requested.order.join(" "));
    if (code === PROTOCOL_ERROR) assert.equal(await peer.reset(1), PROTOCOL_ERROR);
    assert.deepEqual(tested.broken, []);
    await peer.isOpen();
  });
}

test("5.4.2: a reset of ours reaches the peer, is told here once, and what still comes is not told", async () => {
  const { tested, peer } = await requestedRaw();
  await using _tested = tested;
  const requested = tested.ask(false);
  requested.onHead = () => requested.stream.reset(CANCEL);
  peer.send(heads(1, OK), data(1, "late"), heads(1, ["x", "y"], true), resetOf(1, 1));
  assert.equal(await peer.reset(1), CANCEL);
  await peer.isOpen();
  assert.deepEqual(requested.order, ["section", "close"]);
  assert.equal(requested.stream.closeCode, CANCEL);
  requested.stream.write(Buffer.from("x"));
  requested.stream.end(["x", "y"]);
  requested.stream.reset(INTERNAL_ERROR);
  await peer.isOpen();
  assert.deepEqual(
    peer.frames.filter(({ stream }) => stream === 1).map(({ type }) => type),
    [FRAME.headers, FRAME.reset],
  );
});

test("8.1: a stream that is reset in the middle of its own data is told nothing more of it", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  tested.onStream = (recorder) => {
    recorder.onDataReceived = () => recorder.stream.reset(CANCEL);
  };
  peer.send(heads(1, [":method", "POST"]), data(1, "a"), data(1, "b"), data(1, "", true));
  await peer.isOpen();
  assert.deepEqual(tested.streams[0]?.order, ["section", "data", "close"]);
  assert.equal(tested.streams[0]?.dataBytes, 1);
});

test("8.1: a stream that is reset in the middle of a frame is told nothing of the rest of that frame", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  tested.onStream = (recorder) => {
    recorder.onDataReceived = () => recorder.stream.reset(CANCEL);
  };
  const whole = data(1, "abcdef", true);
  peer.send(heads(1, [":method", "POST"]), whole.subarray(0, 12));
  const recorder = await tested.stream();
  await recorder.code();
  peer.send(whole.subarray(12));
  await peer.isOpen();
  assert.deepEqual([recorder.order.join(" "), recorder.dataBytes], ["section data close", 3]);
  assert.deepEqual(tested.broken, []);
});

test("resetAfterQueue() sends queued content first, then the reset", async () => {
  const { tested, peer } = await servedRaw({}, [[4, 3]]);
  await using _tested = tested;
  tested.onStream = (recorder) => {
    recorder.stream.sendSection(OK, false);
    recorder.stream.write(Buffer.from("abcdef"));
    recorder.stream.resetAfterQueue(INTERNAL_ERROR);
  };
  peer.send(request(1));
  await peer.bodyOf(1, 3);
  assert.equal((await tested.stream()).isClosed, false);
  peer.send(frame(FRAME.windowUpdate, 0, 1, Buffer.from([0, 0, 0, 9])));
  assert.equal(await peer.reset(1), INTERNAL_ERROR);
  assert.equal(peer.body(1).toString(), "abcdef");
});

test("5.1.2: a stream more than allowed is refused, and its place is free again once another one ended", async () => {
  const { tested, peer } = await servedRaw({ maxConcurrentStreams: 2 });
  await using _tested = tested;
  peer.send(heads(1, [":method", "POST"]), heads(3, [":method", "POST"]), heads(5, [":method", "POST"]));
  assert.equal(await peer.reset(5), REFUSED_STREAM);
  peer.send(resetOf(1, CANCEL), heads(7, [":method", "POST"]));
  await peer.isOpen();
  assert.deepEqual(
    tested.streams.map(({ stream }) => stream.id),
    [1, 3, 7],
  );
});

test("10.5.1: a section larger than allowed ends its stream only, and the table is right afterwards", async () => {
  const { tested, peer } = await servedRaw({ section: { maxFields: 100, listBytes: 200 } });
  await using _tested = tested;
  // The large field is kept in the table: the index 62 is the one before it.
  const kept = Buffer.from([0x40, 1, 0x61, 1, 0x62]);
  const large = Buffer.concat([Buffer.from([0x40, 1, 0x63, 127, 200, 1]), Buffer.alloc(327, "x")]);
  peer.send(frame(FRAME.headers, 5, 1, Buffer.concat([kept, large])), frame(FRAME.headers, 5, 3, Buffer.from([0xbf])));
  assert.equal(await peer.reset(1), ENHANCE_YOUR_CALM);
  await peer.isOpen();
  assert.deepEqual(
    tested.streams.map(({ sections }) => sections),
    [[["a", "b"]]],
  );
});

test("10.5.1: a section larger than allowed can be answered, with what the limits let through", async () => {
  const { tested, peer } = await servedRaw({ section: { maxFields: 2, listBytes: 1000 } });
  await using _tested = tested;
  const overlong: unknown[] = [];
  tested.listener.onOverlongStream = (stream, section, isWhole) => {
    overlong.push([section, isWhole]);
    stream.sendSection([":status", "431"], true);
  };
  const large = heads(1, [":method", "POST", "a", "1", "b", "2"]);
  peer.send(large, frame(FRAME.data, 0, 1, "body"), heads(3, [":method", "GET"]));
  const { payload } = await peer.frame("an answer", ({ type, stream }) => type === FRAME.headers && stream === 1);
  assert.ok(payload.includes("431"), "the status");
  await peer.isOpen();
  assert.deepEqual(overlong, [[[":method", "POST", "a", "1"], false]]);
  assert.deepEqual(
    tested.streams.map(({ stream }) => stream.id),
    [3],
  );
});

/** Of a stream too many there is a test above: it may cost the stream or the connection. */
const CASES = [...HTTP2_CASES, ...HPACK_CASES].filter(
  ({ section }) => !OF_REQUESTS.test(section) && section !== "5.1.2",
);

for (const { section, what, bytes, later, outcome } of CASES) {
  test(`${section}: ${what}`, async () => {
    const { tested, peer } = await servedRaw({ maxConcurrentStreams: 4 });
    await using _tested = tested;
    tested.onStream = (recorder, _fields, isWhole) => {
      const response = (): void => {
        recorder.stream.sendSection(OK, false);
        recorder.stream.write(Buffer.from("answer"));
        recorder.stream.end();
      };
      // Behind what came together with the request, which may be wrong.
      if (isWhole) setImmediate(response);
      else recorder.onEnded = response;
    };
    peer.send(...bytes);
    if (later !== undefined) {
      await peer.frame("the end of 1", ({ type, stream, flags }) => type === FRAME.data && stream === 1 && flags === 1);
      peer.send(...later);
    }
    if (outcome.kind === "connection error") {
      const code = await peer.goaway();
      assert.ok(outcome.codes.includes(code), `GOAWAY with ${code}`);
      const error = await tested.end();
      assert.ok(error instanceof Http2Error, String(error));
      assert.equal(error.http2Code, code);
    } else if (outcome.kind === "stream error") {
      const code = await peer.reset(outcome.stream);
      assert.ok(outcome.codes.includes(code), `RST_STREAM with ${code}`);
      await peer.isOpen();
    } else if (outcome.kind === "answered") {
      for (const stream of outcome.streams) {
        await peer.frame(`the end of ${stream}`, (one) => one.type === FRAME.data && one.stream === stream);
      }
      await peer.isOpen();
    } else {
      await peer.isOpen();
    }
    assert.deepEqual(tested.broken, []);
  });
}

test("6.10: a section larger than a frame goes on in CONTINUATION, and only HEADERS say that the stream ends", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  tested.onStream = ({ stream }) => {
    // No code of Huffman's makes these shorter.
    stream.sendSection([...OK, "x-large", "\x7f".repeat(40_000)], true);
  };
  peer.send(request(1));
  await peer.isOpen();
  const frames = peer.frames.filter(({ stream }) => stream === 1);
  assert.deepEqual(
    frames.map(({ type, flags }) => [type, flags]),
    [
      [FRAME.headers, 1],
      [FRAME.continuation, 0],
      [FRAME.continuation, 4],
    ],
  );
  assert.ok(frames.every(({ payload }) => payload.length <= 16_384));
});

test("9: what a handler throws ends the connection, not the process, and all its streams are told", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  tested.onStream = (recorder) => {
    if (recorder.stream.id !== 3) return;
    recorder.onDataReceived = () => {
      throw new TypeError("a defect");
    };
  };
  peer.send(heads(1, [":method", "POST"]), heads(3, [":method", "POST"]), data(3, "x"), data(1, "y"));
  assert.equal(await peer.goaway(), INTERNAL_ERROR);
  assert.ok((await tested.end()) instanceof TypeError);
  assert.deepEqual(
    tested.streams.map(({ order }) => order.join(" ")),
    ["section close", "section data close"],
  );
});

for (const { section, what, bytes, outcome } of HTTP2_RESPONSE_CASES.filter(
  ({ isOfMessage }) => isOfMessage !== true,
)) {
  test(`${section}: ${what} (of a server)`, async () => {
    const { tested, peer } = await requestedRaw();
    await using _tested = tested;
    const recorder = tested.ask(true);
    await peer.frame("HEADERS of 1", ({ type, stream }) => type === FRAME.headers && stream === 1);
    peer.send(...bytes);
    if (outcome.kind === "connection error") {
      const code = await peer.goaway();
      assert.ok(outcome.codes.includes(code), `GOAWAY with ${code}`);
      assert.ok((await tested.end()) instanceof Http2Error);
    } else if (outcome.kind === "stream error") {
      const code = await peer.reset(1);
      assert.ok(outcome.codes.includes(code), `RST_STREAM with ${code}`);
      assert.notEqual(await recorder.code(), NO_ERROR);
      await peer.isOpen();
    } else {
      const code = await recorder.code();
      assert.equal(code === NO_ERROR, outcome.kind === "answered");
      await peer.isOpen();
    }
    assert.deepEqual(tested.broken, []);
  });
}

test("8.2.1: blanks around the values of a response are removed, in its trailers too", async () => {
  const { tested, peer } = await requestedRaw();
  await using _tested = tested;
  const recorder = tested.ask(true);
  await peer.frame("HEADERS of 1", ({ type, stream }) => type === FRAME.headers && stream === 1);
  peer.send(heads(1, [...OK, "x", " a b\t"]), heads(1, ["y", "\tc "], true));
  assert.equal(await recorder.code(), NO_ERROR);
  assert.deepEqual([recorder.sections[0]?.slice(-1), recorder.trailers], [["a b"], ["y", "c"]]);
});
