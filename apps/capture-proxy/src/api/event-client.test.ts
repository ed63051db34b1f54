import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { SubscribeFilter, TrafficSnapshot } from "@headworks/capture-contract";
import { row } from "../../test/rows.ts";
import { compileEventFilter, textFrames } from "./event-client.ts";

const NOW = Date.parse("2026-01-01T00:01:00.000Z");

test("a filter uses the properties of live rows", () => {
  const table: readonly (readonly [SubscribeFilter, Partial<TrafficSnapshot>, boolean])[] = [
    [{ method: "GET" }, {}, true],
    [{ method: "post,put" }, {}, false],
    [{ method: "post,put" }, { method: "PUT" }, true],
    [{ status_code: "4xx" }, {}, false],
    [{ status_code: "200,404" }, { status_code: 404 }, true],
    [{ status_code: "400-499" }, { status_code: null }, false],
    [{ search: "ITEMS" }, {}, true],
    [{ search: "other.test" }, {}, false],
    [{ q: "host:example.test status:2xx" }, {}, true],
    [{ q: "-host:example.test" }, {}, false],
    [{ q: "port:443" }, {}, true],
    [{ q: "port:8443" }, { url: "https://api.example.test:8443/v1" }, true],
    [{ q: "type:json" }, {}, true],
    [{ q: "dur:>10ms size:>1kb" }, {}, true],
    [{ q: "state:pending" }, {}, false],
    [{ q: "since:2m" }, {}, true],
    [{ q: "since:10s" }, {}, false],
    [{ q: "path:/v1/items" }, {}, true],
    [{ q: "passthrough:true" }, {}, false],
    [{ method: "GET", q: "status:500" }, {}, false],
    [{ method: null, status_code: "", search: " ", q: "state:complete" }, {}, true],
  ];
  for (const [filter, change, expected] of table) {
    const compiled = compileEventFilter(filter, NOW);
    assert.equal(compiled.kind, "some", JSON.stringify(compiled));
    if (compiled.kind === "some") assert.equal(compiled.matches(row(change)), expected, JSON.stringify(filter));
  }
});

test("no condition is no filter", () => {
  for (const filter of [null, undefined, {}, { q: "" }, { search: null, method: "" }]) {
    assert.equal(compileEventFilter(filter, NOW).kind, "all");
  }
});

/** Each part is within its limit: quotes are escaped, and numbers without units get theirs. */
const LONG_WHEN_WRITTEN: SubscribeFilter = {
  q: Array.from({ length: 4 }, () => `dur:(${"1|".repeat(499)}1)`).join(" "),
  search: '"'.repeat(4096),
  method: `${"a,".repeat(127)}a`,
};

test("a filter that cannot be applied to live rows is refused with the reason", () => {
  const table: readonly (readonly [SubscribeFilter, RegExp])[] = [
    [{ q: "word" }, /no bodies/],
    [{ q: "body:secret" }, /no bodies/],
    [{ q: "header:cookie" }, /no header fields/],
    [{ q: "method:GET OR header[accept]:json" }, /no header fields/],
    [{ q: "-(method:GET note:todo)" }, /no notes/],
    [{ q: "host:a ws.text:error" }, /no messages/],
    [{ q: "-dir:in" }, /no messages/],
    [{ q: "grpc.status:!=0" }, /no outcome of streams/],
    [{ q: "status:" }, /./],
    [{ q: "nosuchfield:1" }, /nosuchfield/],
    [{ status_code: "teapot" }, /status_code/],
    [LONG_WHEN_WRITTEN, /at most 16384 characters/],
  ];
  for (const [filter, message] of table) {
    const compiled = compileEventFilter(filter, NOW);
    assert.equal(compiled.kind, "refused", JSON.stringify(filter));
    if (compiled.kind === "refused") assert.match(compiled.message, message);
  }
});

test("frames of every length class are parsed as they were written", () => {
  for (const length of [0, 1, 125, 126, 127, 65_535, 65_536, 100_000]) {
    const text = "x".repeat(length);
    const frames = textFrames([text]);
    assert.equal(frames.length - length, length < 126 ? 2 : length < 65_536 ? 4 : 10);
    assert.equal(frames.subarray(frames.length - length).toString(), text);
  }
});

test("any sequence of texts is parsed one by one", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "grapheme", maxLength: 300 }), { minLength: 1, maxLength: 5 }), (texts) => {
      const frames = textFrames(texts);
      let at = 0;
      for (const text of texts) {
        const short = frames[at + 1] ?? 0;
        const head = short === 126 ? 4 : 2;
        const length = short === 126 ? frames.readUInt16BE(at + 2) : short;
        assert.equal(frames[at], 0x81);
        assert.equal(frames.subarray(at + head, at + head + length).toString(), text);
        at += head + length;
      }
      assert.equal(at, frames.length);
    }),
  );
});
