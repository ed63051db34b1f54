import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import type { ScriptHook } from "@headworks/capture-contract";
import fc from "fast-check";
import type { BodyLimits } from "#rules/message-edit.ts";
import { createScriptRunner, type HookInput, type HookOutcome } from "./script-runner.ts";
import { testScript } from "./script-test.ts";

const runAfter: BodyLimits["after"] = (delayMs, callback) => {
  const timer = setTimeout(callback, delayMs).unref();
  return () => clearTimeout(timer);
};

const written: [string, Readonly<Record<string, string | null>>][] = [];
const runner = createScriptRunner({
  limits: () => ({ timeoutMs: 10_000, memoryLimitMb: 10, capturesConsole: true }),
  values: { all: () => new Map(), write: (id, changes) => void written.push([id, changes]) },
  onProblem: () => undefined,
  after: runAfter,
});
after(() => runner.close());

const REQUEST = {
  method: "GET",
  url: "http://example.com:8080/a/b?x=1&y=two%20words&x=2",
  fields: ["Host", "example.com"],
};
const CONTEXT = { requestId: "id", sessionId: "session", hook: "on_request" };

type Given = Partial<HookInput> & { readonly fields?: readonly string[]; readonly body?: string | Uint8Array };

/** Calls `onRequest` with this body. */
async function onRequest(code: string, { fields, body, ...given }: Given = {}): Promise<HookOutcome> {
  const input: HookInput = {
    context: CONTEXT,
    request: { ...REQUEST, ...(fields !== undefined && { fields: [...fields] }) },
    requestBody: body === undefined ? "none" : typeof body === "string" ? "text" : "bytes",
    ...given,
  };
  return await runner.callOnce(`function onRequest(request, context) { ${code} }`, "on_request", input, [body ?? null]);
}

/** The value of an expression in a hook. */
async function valueOf(expression: string, given?: Given): Promise<unknown> {
  const outcome = await onRequest(`console.log(JSON.stringify(${expression}))`, given);
  assert.equal(outcome.error, null);
  return JSON.parse(outcome.console[0] ?? "null");
}

/** The fields after a hook. */
async function fieldsAfter(code: string, fields: readonly string[]): Promise<readonly string[] | undefined> {
  const { output, error } = await onRequest(code, { fields });
  assert.equal(error, null);
  return output?.request?.fields;
}

async function urlAfter(code: string): Promise<string | undefined> {
  const { output, error } = await onRequest(code);
  assert.equal(error, null);
  return output?.request?.url;
}

describe("the declarations of the API", () => {
  const text = readFileSync(new URL("script-api.d.ts", import.meta.url), "utf8");

  /** The members of a block, which has no nested members of its own at their depth. */
  function members(opening: RegExp): string[] {
    const start = opening.exec(text);
    assert.ok(start !== null, String(opening));
    const block = text.slice(start.index + start[0].length);
    return [...block.slice(0, block.search(/^\}/m)).matchAll(/^ {2}(?:readonly )?(\w+)\??[:(]/gm)].map(
      ([, name = ""]) => name,
    );
  }
  const declared = (name: string): string[] => {
    const parent = new RegExp(`^interface ${name} extends (\\w+)`, "m").exec(text)?.[1];
    return [
      ...(parent === undefined ? [] : declared(parent)),
      ...members(new RegExp(`^interface ${name}(?: extends \\w+)? \\{`, "m")),
    ].toSorted();
  };

  /** The names of an expression's value inside a hook. */
  async function present(hook: ScriptHook, parameters: string, expression: string): Promise<string[]> {
    const name = hook.replace(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase());
    const fn = name === "onWebsocketMessage" ? "onWebSocketMessage" : name;
    const limits = (): BodyLimits => ({ bodyBytes: 1000, waitMs: 1000, after: runAfter });
    const { error, console } = await testScript(
      {
        source: `function ${fn}(${parameters}) {
          const names = [];
          for (let part = ${expression}; part !== Object.prototype; part = Object.getPrototypeOf(part)) {
            names.push(...Object.getOwnPropertyNames(part).filter((name) => name !== "constructor"));
          }
          console.log(names.join());
        }`,
        hook,
      },
      undefined,
      { runner, limits },
    );
    assert.equal(error, null);
    return (console[0] ?? "").split(",").toSorted();
  }

  for (const [name, hook, parameters, expression] of [
    ["Request", "on_request", "request", "request"],
    ["Response", "on_response", "request, response", "response"],
    ["Request", "on_response", "request", "request"],
    ["Context", "on_request", "request, context", "context"],
    ["Context", "on_response", "request, response, context", "context"],
    ["WebSocketContext", "on_websocket_message", "context", "context"],
    ["GrpcContext", "on_grpc_message", "context", "context"],
    ["StoreContext", "on_traffic_store", "context", "context"],
    ["StoredEntry", "on_traffic_store", "context", "context.entry"],
    ["Request", "on_traffic_store", "context", "context.entry.request"],
    ["Response", "on_traffic_store", "context", "context.entry.response"],
    ["SessionContext", "on_session_start", "context", "context"],
    ["Request", "on_websocket_message", "context", "context.request"],
  ] as const) {
    test(`${name} has the members of ${expression} in ${hook}`, async () => {
      assert.deepEqual(await present(hook, parameters, expression), declared(name));
    });
  }

  for (const name of ["console", "store", "base64", "crypto", "url"]) {
    test(`the global ${name} has the declared members, which cannot be replaced`, async () => {
      const wanted = members(new RegExp(`^declare const ${name}: \\{`, "m")).toSorted();
      assert.deepEqual(await valueOf(`Object.keys(${name}).sort()`), wanted);
      assert.equal(await valueOf(`Object.isFrozen(${name})`), true);
    });
  }

  test("Headers has the declared methods", async () => {
    const source = readFileSync(new URL("script-api.js", import.meta.url), "utf8");
    const methods = /const METHODS = \{([^]*?)\n {2}\};/.exec(source)?.[1] ?? "";
    const names = [...methods.matchAll(/^ {4}(\w+):/gm)].map(([, name = ""]) => name);
    assert.deepEqual(names.toSorted(), declared("Headers"));
    assert.deepEqual(
      await valueOf(`${JSON.stringify(names)}.filter((name) => typeof request.headers[name] !== "function")`),
      [],
    );
  });

  test("there is a function for each hook", () => {
    const functions = [...text.matchAll(/^declare function (\w+)\(/gm)].map(([, name = ""]) => name);
    assert.deepEqual(functions.toSorted(), [
      "onGrpcMessage",
      "onRequest",
      "onResponse",
      "onSessionEnd",
      "onSessionStart",
      "onTrafficStore",
      "onWebSocketMessage",
    ]);
  });
});

describe("headers", () => {
  const FIELDS = ["Host", "a", "X-One", "1", "set-cookie", "a=1", "x-ONE", "2", "Set-Cookie", "b=2"];
  const read = (expression: string): Promise<unknown> => valueOf(expression, { fields: FIELDS });

  test("are read like a plain object, without regard to case", async () => {
    assert.deepEqual(
      await read(
        `[request.headers["x-one"], request.headers["X-ONE"], request.headers.host, request.headers["missing"] ?? null]`,
      ),
      ["1, 2", "1, 2", "a", null],
    );
    assert.deepEqual(await read(`["host" in request.headers, "HOST" in request.headers, "no" in request.headers]`), [
      true,
      true,
      false,
    ]);
    assert.deepEqual(await read(`Object.keys(request.headers)`), ["Host", "X-One", "set-cookie"]);
    const joined = { Host: "a", "X-One": "1, 2", "set-cookie": "a=1, b=2" };
    assert.deepEqual(await read(`({ ...request.headers })`), joined);
    assert.deepEqual(await read(`request.headers`), joined);
    assert.deepEqual(await read(`Object.entries(request.headers)`), Object.entries(joined));
    assert.deepEqual(
      await read(`(() => { const names = []; for (const name in request.headers) names.push(name); return names })()`),
      ["Host", "X-One", "set-cookie"],
    );
    assert.deepEqual(
      await read(
        `[request.headers.hasOwnProperty("host"), Object.hasOwn(request.headers, "no"), String(request.headers)]`,
      ),
      [true, false, "[object Object]"],
    );
  });

  test("are read by methods, in the order received", async () => {
    assert.deepEqual(
      await read(
        `[request.headers.get("SET-COOKIE"), request.headers.getAll("set-cookie"), request.headers.has("x-one")]`,
      ),
      ["a=1, b=2", ["a=1", "b=2"], true],
    );
    assert.deepEqual(
      await read(`[request.headers.get("no") ?? null, request.headers.getAll("no"), request.headers.has("no")]`),
      [null, [], false],
    );
    const pairs = [
      ["Host", "a"],
      ["X-One", "1"],
      ["set-cookie", "a=1"],
      ["x-ONE", "2"],
      ["Set-Cookie", "b=2"],
    ];
    assert.deepEqual(await read(`request.headers.entries()`), pairs);
    assert.deepEqual(await read(`[...request.headers]`), pairs);
    assert.deepEqual(
      await read(
        `(() => { const list = []; request.headers.forEach((value, name) => list.push([name, value])); return list })()`,
      ),
      pairs,
    );
    assert.deepEqual(await read(`request.headers.keys()`), ["Host", "X-One", "set-cookie"]);
  });

  test("are changed in place, with the rest as received", async () => {
    assert.deepEqual(await fieldsAfter(`request.headers["x-one"] = "3"`, FIELDS), [
      "Host",
      "a",
      "X-One",
      "3",
      "set-cookie",
      "a=1",
      "Set-Cookie",
      "b=2",
    ]);
    assert.deepEqual(await fieldsAfter(`request.headers.set("Set-Cookie", ["c=3", "d=4"])`, FIELDS), [
      "Host",
      "a",
      "X-One",
      "1",
      "set-cookie",
      "c=3",
      "set-cookie",
      "d=4",
      "x-ONE",
      "2",
    ]);
    assert.deepEqual(await fieldsAfter(`request.headers.append("Set-Cookie", "c=3")`, FIELDS), [
      ...FIELDS,
      "Set-Cookie",
      "c=3",
    ]);
    assert.deepEqual(await fieldsAfter(`request.headers["New"] = 5`, FIELDS), [...FIELDS, "New", "5"]);
    for (const code of [
      `delete request.headers["SET-cookie"]`,
      `request.headers.delete("Set-Cookie")`,
      `request.headers["set-cookie"] = null`,
      `request.headers["set-cookie"] = undefined`,
      `request.headers["set-cookie"] = []`,
    ]) {
      assert.deepEqual(await fieldsAfter(code, FIELDS), ["Host", "a", "X-One", "1", "x-ONE", "2"], code);
    }
    assert.deepEqual(await fieldsAfter(`Object.assign(request.headers, { host: "b" })`, ["Host", "a"]), ["Host", "b"]);
    assert.deepEqual(await fieldsAfter(`request.headers = { A: "1", B: ["2", "3"] }`, FIELDS), [
      "A",
      "1",
      "B",
      "2",
      "B",
      "3",
    ]);
    assert.deepEqual(await fieldsAfter(`request.headers = [["A", "1"], ["a", "2"]]`, FIELDS), ["A", "1", "a", "2"]);
    assert.deepEqual(await fieldsAfter(`request.contentType = "text/plain"`, ["content-type", "a/b"]), [
      "content-type",
      "text/plain",
    ]);
  });

  test("that are only read, or deleted without being there, are no change", async () => {
    for (const code of [`request.headers["x-one"]`, `delete request.headers["no"]`, `request.headers.delete("no")`]) {
      assert.equal(await fieldsAfter(code, FIELDS), undefined, code);
    }
  });

  test("are texts of UTF-8; other octets pass unchanged", async () => {
    const utf8 = Buffer.from("grün 日本 😀").toString("latin1");
    assert.equal(await valueOf(`request.headers["x"]`, { fields: ["X", utf8] }), "grün 日本 😀");
    assert.equal(await valueOf(`request.headers["x"]`, { fields: ["X", "gr\xfcn"] }), "grün");
    assert.deepEqual(await fieldsAfter(`request.headers.Y = "grün 日本 😀"`, ["X", "gr\xfcn\x01"]), [
      "X",
      "gr\xfcn\x01",
      "Y",
      utf8,
    ]);
    const [, lone] = (await fieldsAfter(`request.headers.Y = "\\ud800"`, [])) ?? [];
    assert.equal(lone, "\xef\xbf\xbd");
  });

  for (const [code, message] of Object.entries({
    'request.headers["a b"] = "1"': "TypeError: headers: a b is no field name",
    'request.headers[""] = "1"': "TypeError: headers:  is no field name",
    'request.headers["a:"] = "1"': "TypeError: headers: a: is no field name",
    'request.headers["ä"] = "1"': "TypeError: headers: ä is no field name",
    'request.headers["a\\r\\nb"] = "1"': "TypeError: headers: a\r\nb is no field name",
    'request.headers.append("a\\nb: c", "1")': "TypeError: headers: a\nb: c is no field name",
    "request.headers.set(5, 'x')": "TypeError: headers: 5 is no field name",
    "request.headers.set(undefined, [])": "TypeError: headers: undefined is no field name",
    'request.headers["A"] = "1\\r\\nB: 2"': "TypeError: headers: the value of A contains a line break or NUL",
    'request.headers["A"] = "1\\0"': "TypeError: headers: the value of A contains a line break or NUL",
    'request.headers.set("A", ["1", "2\\n3"])': "TypeError: headers: the value of A contains a line break or NUL",
    'request.headers["A"] = {}': "TypeError: headers: the value of A is {}: a string is expected",
    'request.headers["A"] = [["1"]]': 'TypeError: headers: the value of A is ["1"]: a string is expected',
    'request.headers["A"] = Symbol("x")': "TypeError: headers: the value of A is Symbol(x): a string is expected",
    'request.headers.append("A")': "TypeError: headers: the value of A is undefined: a string is expected",
    'request.headers = { "a b": "1" }': "TypeError: headers: a b is no field name",
    "request.headers = null": "TypeError: headers: an object is expected",
    'Object.defineProperty(request.headers, "A", { value: "1" })': "TypeError: proxy: defineProperty exception",
  })) {
    test(`refuse ${code}`, async () => {
      const { error, output } = await onRequest(code);
      assert.equal(error?.replace(/ \(line \d+, column \d+\)$/, ""), message);
      assert.equal(output, undefined);
    });
  }

  test("never become other characters than the script wrote", async () => {
    const { output } = await onRequest(`request.headers["A"] = "x\\u010d\\u010aInjected: 1"`);
    assert.deepEqual(output?.request?.fields?.at(-1), Buffer.from("x\u010d\u010aInjected: 1").toString("latin1"));
    assert.doesNotMatch(output?.request?.fields?.join("") ?? "", /[\r\n]/);
  });
});

describe("bodies", () => {
  test("are read as text, bytes and JSON", async () => {
    assert.deepEqual(await valueOf(`[request.body, [...request.bytes], request.json()]`, { body: '{"a":1}' }), [
      '{"a":1}',
      [...Buffer.from('{"a":1}')],
      { a: 1 },
    ]);
    assert.deepEqual(await valueOf(`[request.body, [...request.bytes]]`, { body: Uint8Array.of(0, 255) }), [
      null,
      [0, 255],
    ]);
    assert.deepEqual(await valueOf(`[request.body, request.bytes.length]`), [null, 0]);
    assert.deepEqual(await valueOf(`request.json()`, { body: '\ufeff{"a":1}' }), { a: 1 });
  });

  test("that are missing say why, and only when they are used", async () => {
    const given = { requestBody: "the body is too large" };
    assert.equal(
      (await onRequest(`request.body`, given)).error,
      "Error: body: the body is too large (line 1, column 40)",
    );
    for (const code of ["request.bytes", "request.json()"]) {
      assert.match((await onRequest(code, given)).error ?? "", /^Error: body: the body is too large/);
    }
    assert.equal(
      (await onRequest(`JSON.stringify(request); console.log(request); ({ ...request })`, given)).error,
      null,
    );
    assert.deepEqual((await onRequest(`request.body = "new"`, given)).bodies, ["new"]);
  });

  for (const [code, body] of [
    [`request.body = "ü\\0😀"`, "ü\0😀"],
    [`request.body = ""`, ""],
    [`request.body = null`, ""],
    [`request.bytes = "text"`, Buffer.from("text")],
    [`request.body = Uint8Array.of(1, 2)`, Buffer.of(1, 2)],
    [`request.body = Uint8Array.of(1, 2, 3).subarray(1)`, Buffer.of(2, 3)],
    [`request.body = Uint8Array.of(1, 2).buffer`, Buffer.of(1, 2)],
    [`request.body = new DataView(Uint8Array.of(1, 2, 3).buffer, 1)`, Buffer.of(2, 3)],
    [`request.bytes = Uint16Array.of(513)`, Buffer.of(1, 2)],
    [`request.setJson({ a: [1] })`, '{"a":[1]}'],
    [`request.setJson(null)`, "null"],
  ] as const) {
    test(`are set: ${code}`, async () => {
      const { bodies, output, error } = await onRequest(code, { body: "old" });
      assert.equal(error, null);
      assert.equal(output?.bodyChanged, true);
      assert.deepEqual(typeof body === "string" ? bodies[0] : Buffer.from(bodies[0] ?? ""), body);
    });
  }

  test("set as JSON get a content type unless they have one of JSON", async () => {
    const type = async (fields: string[]): Promise<unknown> =>
      (await fieldsAfter(`request.setJson({})`, fields)) ?? null;
    assert.deepEqual(await type([]), ["Content-Type", "application/json"]);
    assert.deepEqual(await type(["content-type", "text/plain"]), ["content-type", "application/json"]);
    for (const kept of ["application/json; charset=utf-8", "application/problem+json", "text/json"]) {
      assert.equal(await type(["Content-Type", kept]), null);
    }
  });

  for (const code of [
    "request.body = {}",
    "request.body = 5",
    "request.body = undefined",
    "request.setJson(undefined)",
    "request.setJson(() => 1)",
    "request.setJson(10n)",
  ]) {
    test(`refuse ${code}`, async () => {
      assert.match((await onRequest(code)).error ?? "", /^TypeError: /);
    });
  }

  test("with a large text survive a round trip", async () => {
    const body = JSON.stringify(Array.from({ length: 20_000 }, (_, at) => ({ at, text: "ü😀" })));
    const { bodies } = await onRequest(`const list = request.json(); list.push(1); request.setJson(list)`, { body });
    assert.equal(bodies[0], `${body.slice(0, -1)},1]`);
  });
});

describe("the URL of a request", () => {
  test("is read in parts", async () => {
    assert.deepEqual(
      await valueOf(
        `[request.method, request.url, request.scheme, request.host, request.port, request.path, request.query]`,
      ),
      ["GET", REQUEST.url, "http", "example.com", 8080, "/a/b", { x: ["1", "2"], y: "two words" }],
    );
    const secure = { request: { ...REQUEST, url: "https://[::1]/" } };
    assert.deepEqual(
      await valueOf(`[request.scheme, request.host, request.port, request.path, request.query]`, secure),
      ["https", "::1", 443, "/", {}],
    );
  });

  for (const [code, url] of [
    [`request.url = "https://other.example/x?y#z"`, "https://other.example/x?y#z"],
    [`request.host = "other.example"`, "http://other.example:8080/a/b?x=1&y=two%20words&x=2"],
    [`request.host = "other.example:81"`, "http://other.example:81/a/b?x=1&y=two%20words&x=2"],
    [`request.host = "::1"`, "http://[::1]:8080/a/b?x=1&y=two%20words&x=2"],
    [`request.host = "[::1]:81"`, "http://[::1]:81/a/b?x=1&y=two%20words&x=2"],
    [`request.port = 80`, "http://example.com/a/b?x=1&y=two%20words&x=2"],
    [`request.path = "/c"`, "http://example.com:8080/c?x=1&y=two%20words&x=2"],
    [`request.path = "c/#?q=1"`, "http://example.com:8080/c/%23?q=1"],
    [`request.query = { a: "ü &=", b: ["1", "2"], c: null }`, "http://example.com:8080/a/b?a=%C3%BC%20%26%3D&b=1&b=2"],
    [`request.query = "raw=%zz"`, "http://example.com:8080/a/b?raw=%zz"],
    [`request.query = {}`, "http://example.com:8080/a/b"],
    [`request.query.z = 3`, "http://example.com:8080/a/b?x=1&x=2&y=two%20words&z=3"],
    [`delete request.query.x; request.path = "/c"`, "http://example.com:8080/c?y=two%20words"],
    [
      `request.query.z = "1"; request.url = request.url.replace("z=1", "z=2")`,
      "http://example.com:8080/a/b?x=1&x=2&y=two%20words&z=2",
    ],
    [
      `request.query.__proto__ = "1"; request.query["constructor"] = "2"`,
      "http://example.com:8080/a/b?x=1&x=2&y=two%20words&constructor=2",
    ],
  ] as const) {
    test(`is changed: ${code}`, async () => {
      assert.equal(await urlAfter(code), url);
    });
  }

  test("is unchanged when its parts are only read", async () => {
    assert.equal(await urlAfter(`request.query.x; request.host; request.path; request.url`), undefined);
  });

  for (const code of [
    `request.url = "/relative"`,
    `request.url = "ftp://example.com/"`,
    `request.url = "http://"`,
    `request.url = null`,
    `request.method = "GE T"`,
    `request.method = ""`,
    `request.method = null`,
    `request.method = "GET / HTTP/1.1\\r\\nX: y"`,
  ]) {
    test(`and method refuse ${code}`, async () => {
      assert.match((await onRequest(code)).error ?? "", /^TypeError: (?:url|method): /);
    });
  }

  test("cannot be set by its read-only parts", async () => {
    assert.equal(await urlAfter(`request.scheme = "https"`), undefined);
    assert.match((await onRequest(`"use strict"; request.scheme = "https"`)).error ?? "", /^TypeError/);
  });
});

describe("what a hook returns", () => {
  for (const code of [
    "",
    "return",
    "return null",
    "return true",
    "return {}",
    "return { continue: true }",
    "return request",
    "return []",
  ]) {
    test(`goes on: ${code}`, async () => {
      const { output, error } = await onRequest(code);
      assert.deepEqual([output, error], [undefined, null]);
    });
  }

  for (const [code, output, body] of [
    ["return false", { stop: true }, undefined],
    ["return { continue: false }", { stop: true }, undefined],
    ["return { continue: false, close: true }", { stop: true, close: true }, undefined],
    ["return { delay: 5 }", { delayMs: 5 }, undefined],
    ["return { delay: 0 }", undefined, undefined],
    ["return { delay: 1e9 }", { delayMs: 60_000 }, undefined],
    ["return { continue: false, response: {} }", { stop: true, response: { status: 200, fields: [] } }, ""],
    [
      `return { continue: false, response: { statusCode: 404, statusMessage: "Nö", headers: { A: "1", B: ["2", "3"] }, body: "x" } }`,
      { stop: true, response: { status: 404, reason: "N\xc3\xb6", fields: ["A", "1", "B", "2", "B", "3"] } },
      "x",
    ],
    [
      `return { continue: false, response: { body: { a: 1 } } }`,
      { stop: true, response: { status: 200, fields: ["Content-Type", "application/json"] } },
      '{"a":1}',
    ],
    [
      `return { continue: false, response: { headers: { "content-type": "a/b" }, body: [1] } }`,
      { stop: true, response: { status: 200, fields: ["content-type", "a/b"] } },
      "[1]",
    ],
    [
      `return { continue: false, response: { headers: request.headers } }`,
      { stop: true, response: { status: 200, fields: ["Host", "example.com"] } },
      "",
    ],
    [`return { continue: true, response: { body: "ignored" } }`, undefined, undefined],
  ] as const) {
    test(code, async () => {
      const outcome = await onRequest(code);
      assert.equal(outcome.error, null);
      assert.deepEqual(outcome.output, output);
      assert.equal(outcome.bodies[0] ?? undefined, body);
    });
  }

  for (const code of [
    "return 5",
    'return "stop"',
    "return { delay: -1 }",
    "return { delay: Infinity }",
    'return { delay: "5" }',
    "return { continue: false, response: 5 }",
    "return { continue: false, response: { statusCode: 99 } }",
    "return { continue: false, response: { statusCode: 101 } }",
    "return { continue: false, response: { statusCode: 200.5 } }",
    'return { continue: false, response: { statusCode: "200" } }',
    'return { continue: false, response: { headers: "A: 1" } }',
    'return { continue: false, response: { headers: { "A\\r\\n": "1" } } }',
    'return { continue: false, response: { headers: { A: "1\\r\\nB: 2" } } }',
    'return { continue: false, response: { statusMessage: "a\\r\\nb" } }',
  ]) {
    test(`is refused: ${code}`, async () => {
      const { error, output } = await onRequest(code);
      assert.match(error ?? "", /^(?:Type|Range)Error: /);
      assert.equal(output, undefined);
    });
  }
});

describe("async hooks", () => {
  const call = (source: string): Promise<HookOutcome> =>
    runner.callOnce(source, "on_request", { context: CONTEXT, request: REQUEST }, [null]);

  test("are awaited, with what they change and return", async () => {
    const { output } = await call(
      `const onRequest = async (request) => { await null; request.method = "PUT"; await new Promise((go) => go()); return { delay: 5 } }`,
    );
    assert.deepEqual(output, { delayMs: 5, request: { method: "PUT" } });
  });

  test("that throw fail with their error", async () => {
    const { error } = await call(`async function onRequest() { await 0; throw new TypeError("no") }`);
    assert.match(error ?? "", /^TypeError: no \(line 1, column \d+\)$/);
    assert.equal((await call(`async function onRequest() { await 0; throw null }`)).error, "The script threw null");
  });

  test("that never settle fail at once", async () => {
    const { error, durationMs } = await call(`function onRequest() { return new Promise(() => {}) }`);
    assert.match(error ?? "", /^Error: the hook waits for something that never happens/);
    assert.ok(durationMs < 1000);
  });

  test("that settle during a later call do not decide that call", async () => {
    runner.load([
      {
        id: "late",
        name: "late",
        source: `let settle; async function onRequest(request) {
          if (request.method === "FIRST") { await new Promise((go) => { settle = go }); request.method = "WRONG"; return }
          settle(); await 0; await 0; await 0; request.method = "RIGHT" }`,
      },
    ]);
    const callLate = (method: string): Promise<HookOutcome> =>
      runner.call("late", "on_request", { context: CONTEXT, request: { ...REQUEST, method } }, [null]);
    assert.match((await callLate("FIRST")).error ?? "", /never happens/);
    assert.deepEqual((await callLate("SECOND")).output, { request: { method: "RIGHT" } });
    runner.load([]);
  });
});

describe("context", () => {
  test("has the ids, and data of the hooks before", async () => {
    assert.deepEqual(await valueOf(`context`, { data: '{"user":{"id":1}}' }), {
      ...CONTEXT,
      data: { user: { id: 1 } },
    });
  });

  test("passes data on when it changed", async () => {
    const data = async (code: string): Promise<string | undefined> =>
      (await onRequest(code, { data: '{"a":1}' })).output?.data;
    assert.equal(await data(`context.data.b = [2]`), '{"a":1,"b":[2]}');
    assert.equal(await data(`context.data = { c: 3 }`), '{"c":3}');
    assert.equal(await data(`context.data.a`), undefined);
  });

  for (const code of [
    "context.data = 5",
    "context.data = null",
    "context.data = []",
    "context.data.self = context.data",
    "context.data.n = 10n",
    `context.data.text = "x".repeat(2e6)`,
  ]) {
    test(`refuses ${code}`, async () => {
      const { error, output } = await onRequest(code);
      assert.match(error ?? "", /TypeError|context\.data/);
      assert.equal(output, undefined);
    });
  }
});

describe("messages", () => {
  const call = (
    code: string,
    payload: string | Uint8Array,
    hook: ScriptHook = "on_websocket_message",
  ): Promise<HookOutcome> =>
    runner.callOnce(
      `function ${hook === "on_grpc_message" ? "onGrpcMessage" : "onWebSocketMessage"}(context) { ${code} }`,
      hook,
      { context: { ...CONTEXT, hook } },
      [payload],
    );

  test("are changed, dropped or left alone", async () => {
    assert.deepEqual((await call(`context.payload += "!"`, "hi")).bodies, ["hi!"]);
    assert.deepEqual(
      (await call(`context.payload = Uint8Array.of(1).buffer`, "hi")).bodies.map((body) => Buffer.from(body ?? "")),
      [Buffer.of(1)],
    );
    assert.deepEqual((await call(`return false`, "hi")).output, { stop: true });
    assert.equal((await call(`context.payload`, "hi")).output, undefined);
    assert.deepEqual((await call(`context.payload = ""`, "hi")).bodies, [""]);
  });

  for (const value of ["null", "undefined", "{}", "5", "() => 1"]) {
    test(`refuse ${value}`, async () => {
      assert.match(
        (await call(`context.payload = ${value}`, "hi")).error ?? "",
        /^TypeError: payload: .* is neither text nor bytes/,
      );
      assert.match(
        (await call(`context.message = ${value}`, Uint8Array.of(1), "on_grpc_message")).error ?? "",
        /^TypeError: message: /,
      );
    });
  }
});

describe("globals agree with Node:", () => {
  before(() => {
    runner.load([
      {
        id: "globals",
        name: "globals",
        source: `function onRequest(request, { data: { text, key, algorithm } }) {
        console.log(JSON.stringify([
          base64.encode(text), base64.decode(base64.encode(text)), [...base64.decodeBytes(base64.encode(text))],
          crypto.hash(text), crypto.hash(text, algorithm), crypto.hmac(key, text), crypto.hmac(key, text, algorithm),
          crypto.hash(base64.decodeBytes(base64.encode(text)), algorithm),
        ])) }
        function onResponse(request, response, { data: { url: text } }) {
          const parts = url.parse(text);
          console.log(JSON.stringify([parts, url.build(parts)])) }`,
      },
    ]);
  });
  const call = async (hook: ScriptHook, data: object): Promise<unknown[]> => {
    const input: HookInput = {
      context: CONTEXT,
      request: REQUEST,
      response: { status: 200, reason: "", fields: [], durationMs: 1 },
      data: JSON.stringify(data),
    };
    const { error, console } = await runner.call("globals", hook, input, [null, null]);
    assert.equal(error, null);
    return JSON.parse(console[0] ?? "[]") as unknown[];
  };

  test("base64 and crypto", async () => {
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 200 }),
      fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)), maxLength: 50 }),
    );
    await fc.assert(
      fc.asyncProperty(
        text,
        text,
        fc.constantFrom("sha256", "sha1", "sha384", "sha512", "md5", "SHA-256"),
        async (value, key, algorithm) => {
          const name = algorithm.toLowerCase().replace("-", "");
          const bytes = Buffer.from(value, "utf8");
          assert.deepEqual(await call("on_request", { text: value, key, algorithm }), [
            bytes.toString("base64"),
            bytes.toString("utf8"),
            [...bytes],
            createHash("sha256").update(bytes).digest("hex"),
            createHash(name).update(bytes).digest("hex"),
            createHmac("sha256", key).update(bytes).digest("hex"),
            createHmac(name, key).update(bytes).digest("hex"),
            createHash(name).update(bytes).digest("hex"),
          ]);
        },
      ),
      { numRuns: 60 },
    );
  });

  test("url", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.webUrl({
          withQueryParameters: true,
          withFragments: true,
          authoritySettings: { withIPv4: true, withIPv6: true, withPort: true, withUserInfo: true },
        }),
        async (text) => {
          fc.pre(URL.canParse(text));
          const url = new URL(text);
          // `URL` normalizes these.
          fc.pre(!/%2e|\/\.{1,2}(?:[/?#]|$)|:\/\/[^/]*\/\//i.test(text) && !/\[.*:0|::ffff|\d+\.\d+\]/i.test(text));
          const [parts, built] = (await call("on_response", { url: text })) as [Record<string, unknown>, string];
          const query: Record<string, string | string[]> = {};
          for (const name of new Set(url.searchParams.keys())) {
            const all = url.searchParams.getAll(name);
            Object.defineProperty(query, name, {
              value: all.length === 1 ? all[0] : all,
              enumerable: true,
              configurable: true,
              writable: true,
            });
          }
          const defaultPort = url.protocol === "https:" ? 443 : 80;
          assert.equal(parts["scheme"], url.protocol.slice(0, -1));
          assert.equal(parts["port"], url.port === "" ? defaultPort : Number(url.port));
          assert.deepEqual(parts["query"], query);
          if (!/^\d|\[/.test(url.host)) assert.equal(parts["host"], url.hostname);
          const sorted = ({ searchParams }: URL): string[] =>
            [...searchParams].map((pair) => pair.join("=")).toSorted();
          assert.deepEqual(sorted(new URL(built)), sorted(url));
          assert.equal(new URL(built).host, url.host);
        },
      ),
      { numRuns: 100 },
    );
  });

  test("unknown digests, and other values, are refused or converted", async () => {
    assert.match((await onRequest(`crypto.hash("x", "md4")`)).error ?? "", /^RangeError: crypto: md4 is none of/);
    assert.equal(await valueOf(`crypto.hash(5)`), createHash("sha256").update("5").digest("hex"));
    assert.equal(await valueOf(`base64.encode(Uint16Array.of(513))`), "AQI=");
    assert.match(String(await valueOf(`crypto.randomUUID()`)), /^[0-9a-f]{8}-/);
    assert.match((await onRequest(`url.parse("/x")`)).error ?? "", /^TypeError: url.parse/);
    assert.match((await onRequest(`url.build({})`)).error ?? "", /^TypeError: url.build/);
  });
});

describe("a hostile script", () => {
  for (const [name, setUp] of Object.entries({
    "JSON.stringify": `JSON.stringify = () => "{\\"stop\\":true}"`,
    "JSON.parse": `JSON.parse = () => { throw 1 }`,
    "Array.prototype.map": `Array.prototype.map = function () { return "mapped" }`,
    "Array.prototype.push": `Array.prototype.push = () => { throw 1 }`,
    "Symbol.iterator": `Array.prototype[Symbol.iterator] = function* () { yield "x"; yield 5 }`,
    "setters of Object.prototype": `for (const name of ["stop", "request", "fields", "response", "bodyChanged", "data", "method", "0"]) {
      Object.defineProperty(Object.prototype, name, { set(value) { globalThis.taken = value }, get() { return {} }, configurable: true }) }`,
    "getters of Object.prototype": `for (const name of ["then", "continue", "error", "state", "value", "delay"]) {
      Object.defineProperty(Object.prototype, name, { get() { return (done) => done({ continue: false }) }, set() {}, configurable: true }) }`,
    toJSON: `Object.prototype.toJSON = () => ({ request: { fields: ["A\\r\\nB", "1"], url: 5, method: "A B" }, data: "no json", stop: 1, delayMs: -1 })`,
    "RegExp.prototype.exec": `RegExp.prototype.exec = () => ["", "", "", "", "", ""]; RegExp.prototype.test = () => true`,
    "String.prototype": `String.prototype.toLowerCase = () => "x"; String.prototype.trim = () => "\\r\\nInjected: 1"`,
    "Uint8Array[Symbol.hasInstance]": `Object.defineProperty(Uint8Array, Symbol.hasInstance, { value: () => true })`,
    "Promise.prototype.then": `Promise.prototype.then = function (done) { done(); done(); done({ delay: 1 }) }`,
    "Function.prototype.call": `Function.prototype.call = Function.prototype.apply = () => { throw 1 }`,
    Proxy: `globalThis.Proxy = function () { return { entries: () => [["A\\n", "1"]] } }`,
    String: `globalThis.String = () => "\\r\\n"; globalThis.Number = () => NaN; globalThis.Set = Array`,
  })) {
    test(`that replaces ${name} gets an error or a valid result, never a broken host`, async () => {
      const source = `${setUp};
        async function onResponse(request, response, context) { return onRequest(response, context) }
        function onRequest(message, context) {
          message.headers["A"] = "1\\r\\nB: 2"; message.headers.append("C", "3"); message.body = [1];
          context.data.x = 1; console.log({ a: [1] }, message.headers, message);
          return { continue: false, response: { statusCode: 200, headers: { D: "4\\r\\n" }, body: { x: 1 } } } }`;
      for (const hook of ["on_request", "on_response"] as const) {
        const { output, error, bodies } = await runner.callOnce(
          source,
          hook,
          {
            context: CONTEXT,
            request: REQUEST,
            response: { status: 200, reason: "OK", fields: ["A", "b"], durationMs: 1 },
          },
          [null, "body"],
        );
        for (const body of bodies) assert.ok(body === null || typeof body === "string" || body instanceof Uint8Array);
        for (const fields of [output?.request?.fields, output?.change?.fields, output?.response?.fields]) {
          for (const part of fields ?? []) assert.doesNotMatch(part, /[\r\n\0]|[^\0-\xff]/);
        }
        if (output?.data !== undefined) assert.equal(typeof JSON.parse(output.data), "object");
        if (error !== null) assert.equal(output, undefined);
      }
    });
  }

  test("cannot write to the console without limit, nor break it", async () => {
    const { console, error } = await onRequest(`
      const deep = {}; for (const a of "abcdefghij") for (const b of "abcdefghij") (deep[a] ??= {})[b] = new Array(1000).fill({ x: { y: "z".repeat(100) } });
      const circular = { list: [] }; circular.list.push(circular);
      console.log(deep); console.log(circular, new Map([[1, 2]]), new Set([1]), null, undefined, 10n, Symbol("s"), () => 1, new TypeError("no"), Uint8Array.of(1), "\\0\\ud800");
      console.error("x".repeat(1e5)); for (let n = 0; n < 1000; n++) console.log(n)`);
    assert.equal(error, null);
    assert.ok(console.length <= 201);
    assert.ok(console.join("").length < 80_000);
    assert.equal(
      console[1],
      "{ list: [[Circular]] } Map(1) { 1: 2 } Set(1) [1] null undefined 10n Symbol(s) [Function anonymous] TypeError: no Uint8Array(1) \0\ud800",
    );
  });

  test("values that are kept are written once, by script", async () => {
    runner.load([
      {
        id: "keeper",
        name: "keeper",
        source: `function onRequest() { store.set("n", (store.get("n") ?? 0) + 1); console.log(store.get("n"), store.keys()) }`,
      },
    ]);
    written.length = 0;
    for (const expected of ['1 ["n"]', '2 ["n"]']) {
      const { console } = await runner.call("keeper", "on_request", { context: CONTEXT, request: REQUEST }, [null]);
      assert.deepEqual(console, [expected]);
    }
    assert.deepEqual(written, [
      ["keeper", { n: "1" }],
      ["keeper", { n: "2" }],
    ]);
    runner.load([]);
  });
});
