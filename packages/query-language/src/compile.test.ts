import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { processorMs } from "@headworks/testkit";
import { compileQuery } from "./compile.ts";
import { parseQuery } from "./parse.ts";
import { indexable, needs, type Plan } from "./plan.ts";
import type { Query } from "./query.ts";
import { queries, recordOf, records, type RecordFacts } from "../test/random-queries.ts";
import { interpret } from "../test/naive-interpreter.ts";
import type { QueryRecord } from "./record.ts";

const NOW = Date.UTC(2026, 10, 21, 10, 5);

function parsed(text: string): Query {
  const result = parseQuery(text);
  assert.ok(result.ok, result.ok ? "" : `${text}: ${result.error.message}`);
  return result.query;
}

const CASES: readonly (readonly [string, boolean, Partial<RecordFacts>?])[] = [
  ["", true],
  ["host:EXAMPLE", true],
  ["host:*.example.com", true],
  ["host:*.example.com", false, { host: "example.com" }],
  ["host:example.*", false],
  ["host:=API.example.com", true],
  ["method:get", true],
  ["method:ge", false],
  ["method:(POST|GET)", true],
  ["method:!=GET", false],
  ["method:!=(POST|PUT)", true],
  ["path:=/v1/orders.json", true],
  ["path:=/V1/orders.json", false],
  ["path:/V1", true],
  ["ext:json", true],
  ["ext:*", false, { path: "/a.b/c" }],
  ["ext:.json", true],
  ["ext:=.json", true],
  ["ext:(.js|.JSON)", true],
  ["host:[::1]", true, { host: "::1" }],
  ["host:=[::1]", true, { host: "::1" }],
  ["host:!=[::1]", false, { host: "::1" }],
  ["host:::1", true, { host: "::1" }],
  ["url:page=2", true],
  ["query:page", true],
  ["port:443", true],
  ["port:1..1024", true],
  ["status:2xx", true],
  ["status:2xx", false, { status: undefined }],
  ["status:!=200", false, { status: undefined }],
  ["-status:200", true, { status: undefined }],
  ["status:*", false, { status: undefined }],
  ["status:(404|2xx)", true],
  ["type:json", true],
  ["type:js", false],
  ["type:js", true, { resourceType: "script", responseType: "text/javascript" }],
  ["type:image/*", true, { resourceType: "image", responseType: "image/png" }],
  ["-type:image", true, { resourceType: undefined, responseType: undefined }],
  ["grpc.service:orders", true, { requestType: "application/grpc", path: "/shop.v1.Orders/Get" }],
  ["grpc.service:=shop.v1.Orders", true, { requestType: "application/grpc-web+proto", path: "/x/shop.v1.Orders/Get" }],
  ["grpc.method:get", true, { requestType: "application/grpc+proto", path: "/shop.v1.Orders/Get" }],
  ["grpc.method:ge", false, { requestType: "application/grpc", path: "/shop.v1.Orders/Get" }],
  ["grpc.method:*", false, { requestType: "application/grpc", path: "/Get" }],
  ["grpc.service:*", false, { requestType: "application/grpcx", path: "/shop.v1.Orders/Get" }],
  ["grpc.service:*", false],
  ["grpc.status:5", true, { grpcStatus: 5 }],
  ["grpc.status:not_found", true, { grpcStatus: 5 }],
  ["grpc.status:(OK|UNAVAILABLE)", true, { grpcStatus: 14 }],
  ["grpc.status:!=0", true, { grpcStatus: 5 }],
  ["grpc.status:!=OK", false, { grpcStatus: 0 }],
  ["grpc.status:!=0", false],
  ["grpc.status:>=INTERNAL", true, { grpcStatus: 13 }],
  ["grpc.status:1..16", false, { grpcStatus: 17 }],
  ["grpc.status:*", false],
  ["ws.text:ERROR", true, { messages: [["in", "an Error"]] }],
  ['ws.text:"an error" dir:in', true, { messages: [["in", "an error"]] }],
  ["ws.text:=error", false, { messages: [["in", "an error"]] }],
  ["ws.text:/e+r/", true, { messages: [["out", "an error"]] }],
  ["ws.text:an*or", true, { messages: [["out", "(an error)"]] }],
  ["ws.text:*", false],
  ["ws.text:error", false],
  ["-ws.text:error", true],
  // In one conjunction the direction is that of the message, whatever stands between them and in which order.
  [
    "ws.text:a dir:in",
    false,
    {
      messages: [
        ["out", "a"],
        ["in", "b"],
      ],
    },
  ],
  [
    "dir:in host:* ws.text:b",
    true,
    {
      messages: [
        ["out", "a"],
        ["in", "b"],
      ],
    },
  ],
  [
    "(ws.text:a host:*) dir:in",
    false,
    {
      messages: [
        ["out", "a"],
        ["in", "b"],
      ],
    },
  ],
  [
    "ws.text:a dir:!=in",
    true,
    {
      messages: [
        ["out", "a"],
        ["in", "b"],
      ],
    },
  ],
  [
    "ws.text:a dir:in dir:out",
    false,
    {
      messages: [
        ["out", "a"],
        ["in", "a"],
      ],
    },
  ],
  [
    "ws.text:a ws.text:b dir:in",
    true,
    {
      messages: [
        ["in", "a"],
        ["in", "b"],
      ],
    },
  ],
  [
    "-(ws.text:a dir:in)",
    true,
    {
      messages: [
        ["out", "a"],
        ["in", "b"],
      ],
    },
  ],
  // Apart from each other, each is about any message.
  [
    "ws.text:a AND (dir:in OR dir:out)",
    true,
    {
      messages: [
        ["out", "a"],
        ["in", "b"],
      ],
    },
  ],
  [
    "ws.text:a -dir:in",
    false,
    {
      messages: [
        ["out", "a"],
        ["in", "b"],
      ],
    },
  ],
  [
    "ws.text:b dir:in (method:PUT OR (ws.text:a dir:out))",
    true,
    {
      messages: [
        ["out", "a"],
        ["in", "b"],
      ],
    },
  ],
  ["dir:in", true, { messages: [["in", "a"]] }],
  ["dir:received", true, { messages: [["in", "a"]] }],
  ["dir:out", false, { messages: [["in", "a"]] }],
  ["dir:*", false],
  ["header:example", true],
  ["header[HOST]:example", true],
  ["req.header[content-type]:*", false],
  ["header[x-empty]:*", true, { requestFields: ["X-Empty", ""] }],
  ["-header[x-empty]:*", false, { requestFields: ["X-Empty", ""] }],
  ["header[x-empty]:!=a", false, { requestFields: ["X-Empty", ""] }],
  ["cookie[b]:*", true, { requestFields: ["Cookie", "a=1; b="] }],
  ["resp.header[content-type]:json", true],
  ['resp.header:"set-cookie: b"', true],
  ["cookie[sid]:=xyz", true],
  ["cookie[sid]:abc", true],
  ["cookie[SID]:*", false],
  ["cookie[theme]:dark", true],
  ["cookie[Path]:*", false],
  ["body:rÄDER", true],
  ['resp.body:/"id":\\d+/', true],
  ["req.body:*", false],
  ["resp.body:*", true, { responseText: undefined, hasResponseBody: true }],
  ["-body:*", false, { responseText: undefined, hasResponseBody: true }],
  ["-body:*", true, { responseText: undefined }],
  ["resp.body:items*total", true],
  ["RÄDER", true],
  ["nowhere", false],
  ["-nowhere", true],
  ["json(resp,$.items[0].id):42", true],
  ["json(resp,$.items[-1].name):räder", true],
  ["json(resp,$..id):>41", true],
  ["json(resp,$..id):>42", false],
  ["json(resp,$.items[*].*):42", true],
  ["json(resp,$.total):1..3", true],
  ["json(resp,$.nothing):*", false],
  ["json(req,$):*", false],
  ["json(resp,$.__proto__):*", false],
  ["size:>10kb", true],
  ["size:>10kb", false, { responseSizeBytes: undefined }],
  ["reqsize:<=300", true],
  ["dur:100ms..1s", true],
  ["ttfb:>80", false],
  ["proto:h1", true],
  ["proto:h2", true, { httpVersion: "HTTP/2" }],
  ["client:127.0.0.1", true],
  ["session:s1", true],
  ["state:pending", false],
  ["passthrough:true", false],
  ["modified:no", true],
  ["applied:mock", false],
  ["-applied:rewrite", true],
  ["note:*", false],
  ["note:todo", true, { note: "TODO: look" }],
  ["since:10m", true],
  ["since:4m", false],
  ["before:4m", true],
  ["time:2026-11-21", true],
  ["time:<2026-11-21", false],
  ["id:0190A1B2-0000-7000-8000-00000000000A", true],
  ["seq:7", true],
  ["@errors", false],
  ["@errors", true, { state: "failed", status: undefined }],
  ["host:api (status:404 OR dur:>100ms) -type:image", true],
];

for (const [text, expected, facts] of CASES) {
  test(`\`${text}\` is ${expected} for ${facts === undefined ? "an ordinary record" : JSON.stringify(facts)}`, () => {
    assert.equal(compileQuery(parsed(text), { nowMs: NOW })(recordOf(facts)), expected);
  });
}

const NOW_RANDOM = 1_000_010;

test("a compiled predicate says what a naive interpreter says", () => {
  fc.assert(
    fc.property(queries, fc.array(records, { minLength: 1, maxLength: 5 }), (query, samples) => {
      const predicate = compileQuery(query, { nowMs: NOW_RANDOM });
      for (const record of samples) assert.equal(predicate(record), interpret(query, record, NOW_RANDOM));
    }),
    { numRuns: 5000 },
  );
});

function planHolds(plan: Plan, record: QueryRecord): boolean {
  if (plan.kind === "any") return true;
  if (plan.kind === "and") return plan.terms.every((term) => planHolds(term, record));
  if (plan.kind === "or") return plan.terms.some((term) => planHolds(term, record));
  if (plan.kind === "not") return !planHolds(plan.term, record);
  const cell = record[plan.column];
  if (plan.kind === "present") return cell !== undefined && cell !== "";
  if (cell === undefined) return false;
  if (plan.kind === "number") {
    assert.ok(typeof cell === "number");
    const { op, value } = plan;
    return op === "="
      ? cell === value
      : op === "<"
        ? cell < value
        : op === "<="
          ? cell <= value
          : op === ">"
            ? cell > value
            : cell >= value;
  }
  const text = String(cell).replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  const { op, value } = plan;
  return op === "equals"
    ? text === value
    : op === "contains"
      ? text.includes(value)
      : op === "startsWith"
        ? text.startsWith(value)
        : text.endsWith(value);
}

test("what satisfies a query satisfies its plan, and an exact plan finds nothing else", () => {
  let exact = 0;
  fc.assert(
    fc.property(queries, fc.array(records, { minLength: 1, maxLength: 5 }), (query, samples) => {
      const approximation = indexable(query, { nowMs: NOW_RANDOM });
      if (approximation.exact) exact += 1;
      for (const record of samples) {
        const wanted = interpret(query, record, NOW_RANDOM);
        const found = planHolds(approximation.plan, record);
        if (wanted || approximation.exact) assert.equal(found, wanted, JSON.stringify(approximation));
      }
    }),
    { numRuns: 5000 },
  );
  assert.ok(exact > 500, `only ${exact} exact plans`);
});

test("plans restrict columns even where the rest of the query does not", () => {
  const plan = (text: string): unknown => indexable(parsed(text), { nowMs: NOW });
  assert.deepEqual(plan("host:*.Example.com status:>=500 body:x"), {
    plan: {
      kind: "and",
      terms: [
        { kind: "text", column: "host", op: "endsWith", value: ".example.com" },
        { kind: "number", column: "status", op: ">=", value: 500 },
      ],
    },
    exact: false,
  });
  assert.deepEqual(plan("-(method:GET OR body:x)"), {
    plan: { kind: "not", term: { kind: "text", column: "method", op: "equals", value: "get" } },
    exact: false,
  });
  assert.deepEqual(plan("a OR host:b"), { plan: { kind: "any" }, exact: false });
});

test("a predicate fetches only what its query needs, and nothing once columns have decided", () => {
  const touched: string[] = [];
  const note =
    <T>(name: string, value: T) =>
    () => {
      touched.push(name);
      return value;
    };
  const record: QueryRecord = {
    ...recordOf(),
    requestFields: note("fields", []),
    responseFields: note("fields", []),
    requestText: note("requestBody", "abc"),
    responseText: note("responseBody", "abc"),
  };
  const touches = (text: string): string[] => {
    touched.length = 0;
    compileQuery(parsed(text), { nowMs: NOW })(record);
    return touched;
  };
  assert.deepEqual(touches("body:x status:404"), []);
  assert.deepEqual(touches("status:200 dur:>1ms host:api"), []);
  assert.deepEqual(touches("req.body:abc"), ["requestBody"]);
  assert.deepEqual(touches("req.body:x OR req.body:y OR json(req,$):1"), ["requestBody"]);
  assert.deepEqual(needs(parsed("status:404 header[a]:b")), {
    headFields: true,
    requestBody: false,
    responseBody: false,
    streams: false,
  });
  const wanted = (text: string) => Object.entries(needs(parsed(text))).flatMap(([name, is]) => (is ? [name] : []));
  assert.deepEqual(wanted("@errors req.body:x"), ["requestBody"]);
  assert.deepEqual(wanted("word"), ["headFields", "requestBody", "responseBody"]);
  assert.deepEqual(wanted("-(host:a dir:in)"), ["streams"]);
  assert.deepEqual(wanted("grpc.status:0 OR header:a"), ["headFields", "streams"]);
  assert.deepEqual(wanted("grpc.service:a"), []);
});

test("messages are looked at last, one by one, and no further than is needed", () => {
  const taken: string[] = [];
  const texts = function* (): Generator<string> {
    for (const text of ["a", "b", "c"]) {
      taken.push(text);
      yield text;
    }
  };
  const holds = (text: string): boolean =>
    compileQuery(parsed(text), { nowMs: NOW })({ ...recordOf(), webSocketTexts: texts });
  assert.equal(holds("ws.text:a body:nothing"), false);
  assert.deepEqual(taken, []);
  assert.equal(holds("ws.text:b dir:in"), true);
  assert.deepEqual(taken, ["a", "b"]);
  assert.equal(holds("ws.text:a dir:in dir:out"), false);
  assert.deepEqual(taken, ["a", "b"]);
});

test("a predicate forgets one record's bodies before the next", () => {
  const predicate = compileQuery(parsed("body:needle json(resp,$.a):1"), { nowMs: NOW });
  assert.equal(predicate(recordOf({ responseText: '{"a":1,"b":"needle"}' })), true);
  assert.equal(predicate(recordOf({ responseText: '{"a":2}' })), false);
  assert.equal(predicate(recordOf({ responseText: undefined })), false);
});

test("deeply nested JSON bodies are searched without running out of stack", () => {
  const depth = 5_000;
  const body = `${'{"a":'.repeat(depth)}7${"}".repeat(depth)}`;
  assert.equal(compileQuery(parsed("json(resp,$..a):7"), { nowMs: NOW })(recordOf({ responseText: body })), true);
});

test("a pattern looks at the whole text of a body, as a literal does", () => {
  const record = recordOf({ responseText: `${"x".repeat(1_100_000)} BodyTail` });
  for (const text of ["body:BodyTail", "body:/BodyT[a]il/", "body:Body*il"]) {
    assert.ok(compileQuery(parsed(text), { nowMs: NOW })(record), text);
    assert.ok(!compileQuery(parsed(`-${text}`), { nowMs: NOW })(record), `-${text}`);
  }
});

test("half a million column checks take well under a second", () => {
  const predicate = compileQuery(
    parsed("host:*.example.com method:(POST|PUT) status:>=500 -type:image path:/^\\/v[0-9]+/"),
    { nowMs: NOW },
  );
  const sample = recordOf({ method: "PUT", status: 503 });
  const tookMs = processorMs(() => {
    let found = 0;
    for (let count = 0; count < 500_000; count += 1) if (predicate(sample)) found += 1;
    assert.equal(found, 500_000);
  });
  assert.ok(tookMs < 5000, `${tookMs} ms`);
});

test("a text of header fields is found whether its octets are Latin-1 or UTF-8", () => {
  const octets = { latin: "gr\xf6\xdfe \xc4", utf8: Buffer.from("größe Ä").toString("latin1"), ascii: "groesse" };
  const expected: readonly [query: string, latin: boolean, utf8: boolean, ascii: boolean][] = [
    ["header:größe", true, true, false],
    ["header:ä", true, true, false],
    ["header[x-size]:größe", true, true, false],
    ['header[x-size]:="größe Ä"', true, true, false],
    ['header[x-size]:!="größe Ä"', false, false, true],
    ["header[x-size]:gr*ß*", true, true, false],
    ["header[x-size]:/^gr[öo]ße/", true, true, false],
    ["header[x-size]:/^gr\\u00f6ße/", true, true, false],
    ["cookie:größe", true, true, false],
    ["GRÖSSE", false, false, false],
    ["GRÖẞE", true, true, false],
    ["Größe", true, true, false],
    ["-größe", false, false, true],
    ["header:Ã¶", false, true, false],
  ];
  for (const [query, ...outcomes] of expected) {
    const predicate = compileQuery(parsed(query), { nowMs: NOW });
    const found = [octets.latin, octets.utf8, octets.ascii].map((value) =>
      predicate(recordOf({ requestFields: ["X-Size", value, "Cookie", `a=${value}`] })),
    );
    assert.deepEqual(found, outcomes, query);
  }
});

test("URLs are found as people type them and as they are sent", () => {
  const record = recordOf({
    host: "xn--e1afmkfd.xn--p1ai",
    path: "/%D0%BF%D1%83%D1%82%D1%8C/a%20b",
    query: "%d0%ba%d0%bb%d1%8e%d1%87=%D0%B4%D0%B0+%D0%BD%D0%B5%D1%82",
    url: "https://xn--e1afmkfd.xn--p1ai/%D0%BF%D1%83%D1%82%D1%8C/a%20b?%d0%ba%d0%bb%d1%8e%d1%87=%D0%B4%D0%B0+%D0%BD%D0%B5%D1%82",
  });
  const octets = Buffer.from("/путь").toString("latin1");
  const raw = recordOf({
    path: octets,
    query: Buffer.from("ключ=1").toString("latin1"),
    url: `http://a.test${octets}`,
  });
  const holds = (q: string, of = record): boolean => {
    const parsed = parseQuery(q);
    assert.ok(parsed.ok, q);
    const { plan, exact } = indexable(parsed.query, { nowMs: 0 });
    // The plan may only leave out what the predicate leaves out.
    assert.ok(!exact || plan.kind !== "any", q);
    return compileQuery(parsed.query, { nowMs: 0 })(of);
  };
  for (const q of [
    "host:пример.рф",
    "host:ПРИМ",
    "host:=пример.рф",
    "host:*.рф",
    "host:/^пример/",
    "host:xn--e1afmkfd",
    "path:/путь",
    "path:/Путь/",
    'path:="/путь/a b"',
    'path:"a b"',
    "path:/%d0%bf",
    "path:/пу*",
    "query:ключ",
    'query:"да нет"',
    "url:https://пример.рф/путь",
    "url:пример",
    "рф/путь",
    "-host:другой",
    "host:!=другой.рф",
  ]) {
    assert.ok(holds(q), q);
  }
  for (const q of ["host:пример.рус", "path:/иной", "-host:пример", "host:!=пример.рф", "query:путь"]) {
    assert.ok(!holds(q), q);
  }
  for (const q of ["path:/путь", "query:ключ", "url:a.test/путь", "a.test/путь"]) assert.ok(holds(q, raw), q);
});
