import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "@headworks/testkit";
import { type Column, durationText, renderPairs, renderTable, sizeText, timeText, valueText } from "#cli/table.ts";
import { presentEntry, present } from "#cli/present.ts";
import { TABLES } from "#cli/tables.ts";
import { fitted, padded, terminalOf, textWidth, visibleJson, visibleOctets, visibleText } from "#cli/terminal.ts";
import { shownRequest, shownResponse } from "#exchange/shown-message.ts";
import { operations } from "@headworks/capture-contract";
import { parseQuery } from "@headworks/query-language";
import { Writable } from "node:stream";
import { window } from "./cli-rig.ts";
import { row } from "./rows.ts";

const widths: readonly (readonly [string, number])[] = [
  ["", 0],
  ["abc", 3],
  ["é", 1],
  ["e\u0301", 1],
  ["日本語", 6],
  ["한국", 4],
  ["ｆｕｌｌ", 8],
  ["👍", 2],
  ["👩‍👩‍👧‍👦", 2],
  ["🇩🇪", 2],
  ["❤️", 2],
  ["\u200d", 0],
  ["Ünïcödé", 7],
  ["a日b", 4],
  ["1", 1],
];

for (const [text, width] of widths) {
  test(`${JSON.stringify(text)} takes ${width} columns`, () => assert.equal(textWidth(text), width));
}

test("a cut text never takes more columns than it was given and keeps whole characters", () => {
  const anything = fc.string({ unit: "grapheme", maxLength: 40 });
  fc.assert(
    fc.property(
      anything,
      fc.integer({ min: 0, max: 30 }),
      fc.constantFrom("end" as const, "middle" as const),
      (text, columns, where) => {
        const shown = fitted(text, columns, where);
        assert.ok(textWidth(shown) <= columns, shown);
        if (text.isWellFormed()) assert.ok(shown.isWellFormed());
        if (textWidth(text) <= columns) assert.equal(shown, text);
      },
    ),
  );
});

test("a text cut in its middle keeps its beginning and its end", () => {
  assert.match(
    fitted("https://example.com/a/long/path/to/file.js", 20, "middle"),
    /^https:\/\/ex.*…e?\.js$|^https:\/\/ex.*…[file]*\.js$/,
  );
});

test("padding counts columns, not characters", () => {
  assert.equal(padded("日本", 6), "日本  ");
  assert.equal(padded("日本", 6, "right"), "  日本");
  assert.equal(padded("long", 2), "long");
});

interface Row {
  readonly id: string;
  readonly name: string;
  readonly count: number;
}

const columns: readonly Column<Row>[] = [
  { title: "Id", text: (row) => row.id },
  { title: "Name", text: (row) => row.name, shrinksTo: 4 },
  { title: "Count", text: (row) => String(row.count), align: "right" },
];

test("columns are as wide as their widest cell, numbers stand at the right", () => {
  const rows = [
    { id: "a", name: "one", count: 1 },
    { id: "bb", name: "twenty", count: 20_000 },
  ];
  assert.equal(renderTable(rows, columns, window(80)), "Id  Name    Count\na   one         1\nbb  twenty  20000\n");
});

test("no line of a table is wider than the window, whatever the cells hold", () => {
  const row = fc.record({
    id: fc.string({ maxLength: 5 }),
    name: fc.string({ unit: "grapheme", maxLength: 80 }),
    count: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(row, { maxLength: 8 }), fc.integer({ min: 50, max: 120 }), (rows, width) => {
      const lines = renderTable(rows, columns, window(width)).split("\n");
      assert.equal(lines.length, rows.length + 2);
      for (const line of lines) assert.ok(textWidth(line) <= width, `${textWidth(line)} > ${width}: ${line}`);
    }),
  );
});

test("tables outside of a terminal are not cut", () => {
  const pipe = terminalOf(new Writable(), {});
  const name = "x".repeat(500);
  assert.ok(renderTable([{ id: "a", name, count: 1 }], columns, pipe).includes(name));
});

test("a captured name cannot move the cursor, ring the bell, add lines or turn the text round", () => {
  const hostile = "a\x1b[2Jb\x07c\nd\re\u009b31mf\u202eg";
  const line = renderTable([{ id: "1", name: hostile, count: 1 }], columns, window(120));
  assert.doesNotMatch(line, /[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]/);
  assert.equal(line.split("\n").length, 3);
});

test("visible text keeps ordinary text and, if asked, line feeds and tabs", () => {
  assert.equal(visibleText("grün 日本 👩‍👧"), "grün 日本 👩‍👧");
  assert.equal(visibleText("a\tb\n", true), "a\tb\n");
  assert.equal(visibleText("a\tb\n\x1b"), "a␉b␊␛");
});

const octets = (text: string): string => Buffer.from(text, "utf8").toString("latin1");

const READINGS: readonly [octets: string, shown: string][] = [
  [octets("grün 日本"), "grün 日本"],
  ["caf\xe9", "café"],
  [octets("a\u202eb\x1b"), "a\\u202eb␛"],
  ["plain", "plain"],
];
for (const [value, shown] of READINGS) {
  test(`the octets ${JSON.stringify(value)} are shown as ${JSON.stringify(shown)}`, () =>
    assert.equal(visibleOctets(value), shown));
}

test("field values and reasons of an entry are shown as the text that their octets spell", () => {
  const body = { bytes: undefined, sizeBytes: 0, storedBytes: 0, state: "none" } as const;
  const message = { version: "HTTP/1.1", fields: ["X-City", octets("Köln")], trailers: undefined } as const;
  const place = { method: "GET", scheme: "http", host: "a.test", port: 80, path: "/" } as const;
  const { timings, ...facts } = row();
  const shown = presentEntry(
    {
      ...facts,
      request: shownRequest({ ...place, ...message, fields: [...message.fields] }, body),
      response: shownResponse(
        { status: 200, reason: octets("Grüße"), ...message, fields: [...message.fields] },
        body,
        1,
      ),
      trace: [],
      original_request: null,
      original_response: null,
      notes: null,
      failure: null,
      tls: null,
      connection_id: null,
      timings,
    },
    window(80),
  );
  assert.match(shown, /GET \/ HTTP\/1\.1\nX-City: Köln\n/);
  assert.match(shown, /HTTP\/1\.1 200 Grüße\nX-City: Köln\n/);
});

test("JSON for a terminal parses to the same value and holds no control characters", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string({ unit: anyCharacter }), (value, text) => {
      const json = JSON.stringify({ value, text, c1: "\u009b\u202e" });
      const shown = visibleJson(json);
      assert.deepEqual(JSON.parse(shown), JSON.parse(json));
      assert.doesNotMatch(shown, /[\x00-\x1f\x7f-\x9f\u202e]/);
    }),
  );
});

test("pairs stand in two columns, several lines below their name", () => {
  assert.equal(
    renderPairs(
      [
        ["a", "1"],
        ["long", "x\ny"],
      ],
      window(80),
    ),
    "a     1\nlong\n    x\n    y\n",
  );
});

const sizes: readonly (readonly [number | null, string])[] = [
  [null, ""],
  [0, "0 B"],
  [1023, "1023 B"],
  [1024, "1.0 KiB"],
  [1536, "1.5 KiB"],
  [102_400, "100 KiB"],
  [1_048_575, "1.0 MiB"],
  [1_073_741_824, "1.0 GiB"],
];
for (const [bytes, text] of sizes) {
  test(`${bytes} bytes are ${JSON.stringify(text)}`, () => assert.equal(sizeText(bytes), text));
}

const durations: readonly (readonly [number | null, string])[] = [
  [null, ""],
  [0, "0.0 ms"],
  [3.14, "3.1 ms"],
  [9.96, "10 ms"],
  [999.4, "999 ms"],
  [999.6, "1.00 s"],
  [59_990, "59.99 s"],
  [125_000, "2 min 5 s"],
];
for (const [ms, text] of durations) {
  test(`${ms} ms are ${JSON.stringify(text)}`, () => assert.equal(durationText(ms), text));
}

test("values are shown on one line", () => {
  assert.equal(valueText(null), "");
  assert.equal(valueText(true), "yes");
  assert.equal(valueText(0.650684000000183), "0.651");
  assert.equal(valueText(1e6), "1000000");
  assert.equal(valueText(["a", 1, false]), "a, 1, no");
  assert.equal(valueText({ a: 1 }), '{"a":1}');
  assert.equal(timeText("not a time"), "not a time");
});

test("a time of a table names its zone, and a query takes it for the same moment", (t) => {
  const { TZ: before } = process.env;
  t.after(() => {
    if (before === undefined) delete process.env["TZ"];
    else process.env["TZ"] = before;
  });
  for (const [zone, shown] of [
    ["UTC", "2026-07-21T10:05:03Z"],
    ["Europe/Berlin", "2026-07-21T12:05:03+02:00"],
    ["America/St_Johns", "2026-07-21T07:35:03-02:30"],
    ["Asia/Kolkata", "2026-07-21T15:35:03+05:30"],
  ] as const) {
    process.env["TZ"] = zone;
    assert.equal(timeText("2026-07-21T10:05:03.250Z"), shown);
    const query = parseQuery(`since:${timeText("2026-07-21T10:05:03Z")}`);
    assert.ok(query.ok, zone);
    const moment = { kind: "at", epochMs: Date.UTC(2026, 6, 21, 10, 5, 3) };
    assert.deepEqual(query.query, { kind: "since", moment });
  }
});

test("every named row of the contract's lists has a table", () => {
  const named = new Set<string>();
  for (const table of Object.values(operations)) {
    for (const operation of Object.values(table) as {
      expose?: { cli?: false };
      responses: Record<string, unknown>;
    }[]) {
      if (operation.expose?.cli === false) continue;
      const id = (operation.responses["200"] as { items?: { $id?: string } } | undefined)?.items?.$id;
      if (id !== undefined) named.add(id);
    }
  }
  assert.deepEqual(
    [...named].filter((name) => !Object.keys(TABLES).includes(name)),
    [],
  );
  assert.ok(named.size >= 4);
});

test("steps of a test are lines with a mark, long lists of objects only counted", () => {
  const steps = [
    { name: "Connect", ok: true, detail: "done" },
    { name: "Answer", ok: false, detail: "none" },
  ];
  assert.equal(present({ steps }, undefined, window(80)), "steps\n    ✓ Connect: done\n    ✗ Answer: none\n");
  const many = Array.from({ length: 60 }, (_, at) => ({ at }));
  assert.equal(present({ many }, undefined, window(80)), "many  60, see --json\n");
  assert.equal(present({ few: [{ at: 1, n: 2 }] }, undefined, window(80)), "few  at 1  n 2\n");
});

test("fields of a message are names with values, also where an answer holds them as pairs", () => {
  const response = {
    request: {
      headers_list: [
        ["Host", "localhost"],
        ["Accept", ""],
      ],
      method: "GET",
    },
  };
  const shown = present(response, undefined, window(80));
  assert.match(shown, /Host: localhost\n +Accept: \n/u);
});

test("a list without a table shows its properties, an object its pairs", () => {
  assert.equal(present([{ a: 1, b: "x" }], undefined, window(80)), "a  b\n1  x\n");
  assert.equal(
    present({ outer: { inner: 2 }, list: ["x"] }, undefined, window(80)),
    "outer.inner  2\nlist         x\n",
  );
  assert.equal(present({ used_bytes: 2048 }, undefined, window(80)), "used_bytes  2048 (2.0 KiB)\n");
});

test("the size of a body is shown in bytes, that of a buffer is a number of lines", () => {
  const response = { max_body_size: 16_384, log_config: { async_buffer_size: 16_384 }, async: { buffer_size: 16_384 } };
  assert.equal(
    present(response, undefined, window(80)),
    [
      "max_body_size                 16384 (16.0 KiB)",
      "log_config.async_buffer_size  16384",
      "async.buffer_size             16384",
      "",
    ].join("\n"),
  );
});

const color: readonly (readonly [Record<string, string>, boolean, boolean])[] = [
  [{}, true, true],
  [{}, false, false],
  [{ NO_COLOR: "1" }, true, false],
  [{ NO_COLOR: "" }, true, true],
  [{ FORCE_COLOR: "1" }, false, true],
  [{ FORCE_COLOR: "0" }, true, false],
  [{ TERM: "dumb" }, true, false],
];
for (const [environment, isTTY, expected] of color) {
  test(`with ${JSON.stringify(environment)} on a ${isTTY ? "terminal" : "pipe"} there are ${expected ? "" : "no "}colours`, () => {
    const terminal = terminalOf(Object.assign(new Writable(), { isTTY, columns: 80 }), environment);
    assert.equal(terminal.style("red", "x") !== "x", expected);
  });
}

test("an entry shows which rules touched it, and what its request and answer were before", () => {
  const head = { headers_list: [], body: null, body_size: 0, body_state: "none" };
  const request = { ...head, method: "GET", url: "http://b.test/new", path: "/new", http_version: "HTTP/1.1" };
  const response = { ...head, status_code: 418, status_message: "Teapot", http_version: "HTTP/1.1", duration_ms: 1 };
  const entry = {
    id: "id1",
    seq: 1,
    timestamp: "2026-01-01T00:00:00.000Z",
    state: "complete",
    source: "upstream",
    timings: {},
    trace: [
      { kind: "rewrite", rule_id: "r", rule_name: "to b\x1b[2J", phase: "request", changes: ["url", "method"] },
      { kind: "throttle", rule_id: "t", rule_name: "3G", phase: "request", changes: [] },
    ],
    request,
    response,
    original_request: { ...request, method: "POST", url: "http://a.test/old" },
    original_response: { ...response, status_code: 200, status_message: "OK" },
  };
  const text = present(entry, "TrafficEntry", window(120));
  assert.match(text, /^Rule +rewrite "to b␛\[2J", request: url; method$/m);
  assert.match(text, /^Rule +throttle "3G", request: matched$/m);
  assert.match(text, /^Original request +POST http:\/\/a\.test\/old$/m);
  assert.match(text, /^Original response +200 OK$/m);
});

test("which messages a rule is for is told in words", () => {
  const rule = (match: object) => ({
    id: "r",
    name: "n",
    enabled: true,
    match,
    action: { type: "drop" },
    hit_count: 0,
  });
  const rules = [rule({}), rule({ host: "*.a.test", direction: "receive", message_type: "text", text: "price" })];
  const shown = present(rules, "WsRule", window(120));
  assert.match(shown, /drop +all +0/u);
  assert.match(shown, /drop +text, from the server, host \*\.a\.test, with price +0/u);
});

test("messages of streams are told with their direction and event, a keep-alive by its comment, bytes as they begin", () => {
  const frame = (change: object) => ({
    ordinal: 1,
    direction: "receive",
    type: "event",
    text: null,
    base64: null,
    size: 3,
    effect: null,
    timestamp: "2026-01-01T00:00:00.000Z",
    attributes: {},
    ...change,
  });
  const frames = [
    frame({ text: "a\n b", attributes: { event: "tick" } }),
    frame({ ordinal: 2, text: "", size: 0, attributes: { comment: "alive" } }),
    frame({ ordinal: 3, direction: "send", type: "binary", base64: "AAEC" }),
    frame({ ordinal: 4, text: "abc" }),
  ];
  const lines = present(frames, "StreamFrame", window(80)).split("\n");
  assert.match(lines[1] ?? "", /^1 +↓ +tick +3 B +a b$/u);
  assert.match(lines[2] ?? "", /^2 +↓ +comment +0 B +: alive$/u);
  assert.match(lines[3] ?? "", /^3 +↑ +binary +3 B +base64:AAEC$/u);
  assert.match(lines[4] ?? "", /^4 +↓ +message +3 B +abc$/u);
});
