import assert from "node:assert/strict";
import { STATUS_CODES } from "node:http";
import { test } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "@headworks/testkit";
import { appendHttp2Fields, parseImfFixdate, withoutPseudoFields } from "./field-values.ts";
import {
  decodeJwt,
  foldVary,
  formatCookies,
  formatHttpDate,
  formatLink,
  formatUrlEncoded,
  negotiate,
  parseAccept,
  parseAuthorization,
  parseCookieDate,
  parseCookies,
  parseHttpDate,
  parseQuery,
  parseSetCookie,
  parseUrlEncoded,
  percentDecoded,
  prefersHtml,
  reasonPhrase,
} from "./index.ts";

test("cookies keep order, duplicates and odd pairs", () => {
  assert.deepEqual(parseCookies(['a=1; b="two"; a=3;; lone ;=x; c==;d=a=b', "e=5"]), [
    { name: "a", value: "1" },
    { name: "b", value: '"two"' },
    { name: "a", value: "3" },
    { name: "", value: "lone" },
    { name: "", value: "x" },
    { name: "c", value: "=" },
    { name: "d", value: "a=b" },
    { name: "e", value: "5" },
  ]);
  assert.deepEqual(parseCookies(""), []);
  assert.equal(formatCookies(parseCookies("a=1;b; c=3")), "a=1; b; c=3");
});

test("all attributes of a Set-Cookie are read", () => {
  const text =
    "id=a=b; Path=/x; Domain=.Example.COM; Max-Age=60; Expires=Wed, 21 Oct 2015 07:28:00 GMT; Secure; HttpOnly; SameSite=lax; Partitioned; Priority=High; Odd=1";
  const { attributes, ...cookie } = parseSetCookie(text);
  assert.deepEqual(cookie, {
    name: "id",
    value: "a=b",
    path: "/x",
    domain: "example.com",
    maxAgeSeconds: 60,
    expiresMs: Date.UTC(2015, 9, 21, 7, 28),
    secure: true,
    httpOnly: true,
    sameSite: "Lax",
    partitioned: true,
    priority: "High",
  });
  assert.deepEqual(
    attributes.map(({ name }) => name).join(),
    "Path,Domain,Max-Age,Expires,Secure,HttpOnly,SameSite,Partitioned,Priority,Odd",
  );
  assert.deepEqual(attributes.at(-1), { name: "Odd", value: "1" });
  assert.deepEqual(attributes[4], { name: "Secure", value: undefined });
});

test("odd attributes of a Set-Cookie are kept as written and otherwise ignored", () => {
  const { attributes, ...cookie } = parseSetCookie(
    "=; Max-Age=1.5; Expires=soon; Path=/a; Path=b; SameSite=Lax; SameSite=?; Domain=;;secure=no",
  );
  assert.deepEqual(cookie, { name: "", value: "", secure: true, httpOnly: false, partitioned: false });
  assert.equal(attributes.length, 8);
});

const cookieDates: [text: string, iso: string | undefined][] = [
  ["Wed, 21 Oct 2015 07:28:00 GMT", "2015-10-21T07:28:00.000Z"],
  ["Wednesday, 21-Oct-15 07:28:00 GMT", "2015-10-21T07:28:00.000Z"],
  ["Wed Oct 21 7:28:0 2015", "2015-10-21T07:28:00.000Z"],
  ["21 october 99 23:59:59 whatever", "1999-10-21T23:59:59.000Z"],
  ["1 Jan 69 00:00:00", "2069-01-01T00:00:00.000Z"],
  ["30 Feb 2020 00:00:00", undefined],
  ["21 Oct 1600 00:00:00", undefined],
  ["21 Oct 2015 24:00:00", undefined],
  ["21 Oct 2015", undefined],
  ["", undefined],
];

for (const [text, iso] of cookieDates) {
  test(`the cookie date "${text}" is ${iso ?? "none"}`, () => {
    const ms = parseCookieDate(text);
    assert.equal(ms === undefined ? undefined : new Date(ms).toISOString(), iso);
  });
}

const httpDates: [text: string, ms: number | undefined][] = [
  ["Sun, 06 Nov 1994 08:49:37 GMT", 784111777000],
  ["Mon, 06 Nov 1994 08:49:37 GMT", undefined],
  ["Sun, 6 Nov 1994 08:49:37 GMT", undefined],
  ["Sunday, 06-Nov-94 08:49:37 GMT", 784111777000],
  ["Monday, 06-Nov-94 08:49:37 GMT", undefined],
  ["Sun, 06-Nov-94 08:49:37 GMT", undefined],
  ["Sun Nov  6 08:49:37 1994", 784111777000],
  ["Sun Nov  6 08:49:37 1994 GMT", undefined],
  ["Sun Nov 6 08:49:37 1994", undefined],
  ["Sun, 06 Nov 1994 08:49:37 UTC", undefined],
  ["Sun, 06 Nov 1994 24:00:00 GMT", undefined],
  ["Wed, 30 Feb 2022 00:00:00 GMT", undefined],
  [" Sun, 06 Nov 1994 08:49:37 GMT", undefined],
  ["", undefined],
];

for (const [text, ms] of httpDates) {
  test(`the HTTP date "${text}" is ${ms ?? "none"}`, () => assert.equal(parseHttpDate(text), ms));
}

test("a year of two digits is at most 50 years ahead", () => {
  const nowMs = Date.UTC(2026, 0);
  assert.equal(parseHttpDate("Tuesday, 01-Jan-75 00:00:00 GMT", nowMs), Date.UTC(2075, 0));
  assert.equal(parseHttpDate("Saturday, 01-Jan-77 00:00:00 GMT", nowMs), Date.UTC(1977, 0));
});

test("HTTP dates are written as they are read", () => {
  const whole = fc
    .integer({ min: Date.UTC(1000, 0), max: Date.UTC(9999, 11, 31) })
    .map((ms) => ms - (((ms % 1000) + 1000) % 1000));
  fc.assert(fc.property(whole, (ms) => assert.equal(parseHttpDate(formatHttpDate(ms)), ms)));
  assert.equal(formatHttpDate(1999), "Thu, 01 Jan 1970 00:00:01 GMT");
  for (const ms of [NaN, 8.64e15, -8.64e15]) assert.throws(() => formatHttpDate(ms), RangeError);
});

test("query parameters keep order, duplicates and their raw form", () => {
  assert.deepEqual(parseQuery("https://x/p?a=1&b&a=%C3%BC+%zz&&=v&c=#?d=1"), [
    { rawName: "a", rawValue: "1", name: "a", value: "1" },
    { rawName: "b", rawValue: undefined, name: "b", value: "" },
    { rawName: "a", rawValue: "%C3%BC+%zz", name: "a", value: "ü %zz" },
    { rawName: "", rawValue: "v", name: "", value: "v" },
    { rawName: "c", rawValue: "", name: "c", value: "" },
  ]);
  assert.deepEqual(parseQuery("/path#?a=1"), []);
  assert.equal(percentDecoded("%ff%41%"), "\u{fffd}A%");
});

test("parameters are decoded as URLSearchParams does, and written back", () => {
  const text = fc.string({ unit: fc.constantFrom(..."a %2B+&=0F?".split(""), "%C3%BC", "%F0%9F%98%80") });
  // Node's own class garbles octets that are no UTF-8 beside non-ASCII characters: ASCII only.
  fc.assert(
    fc.property(text, (query) => {
      const pairs = parseUrlEncoded(query).map(({ name, value }): [string, string] => [name, value]);
      assert.deepEqual(pairs, [...new URLSearchParams(query)]);
      const again = parseUrlEncoded(formatUrlEncoded(parseUrlEncoded(query)));
      assert.deepEqual(
        again.map(({ name, value }): [string, string] => [name, value]),
        pairs,
      );
    }),
    { numRuns: 1000 },
  );
});

const offers = ["application/json", "text/html", "text/plain"] as const;

const negotiations: [accept: string | undefined, chosen: string | undefined][] = [
  [undefined, "application/json"],
  ["", "application/json"],
  ["*/*", "application/json"],
  ["text/*", "text/html"],
  ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"],
  ["text/plain, application/json", "text/plain"],
  ["text/html;q=0.5, application/json;q=0.4", "text/html"],
  ["*/*, application/json;q=0", "text/html"],
  ["text/*;q=0.9, text/html;q=0.1, application/*;q=0.5", "text/plain"],
  ["TEXT/HTML", "text/html"],
  ["image/png", undefined],
  ["text/html;q=0", undefined],
  ["text/html;level=1", undefined],
  ["text/html;q=2, text/plain;q=0.1", "text/plain"],
  ["garbage, */html, text/plain", "text/plain"],
];

for (const [accept, chosen] of negotiations) {
  test(`Accept "${accept ?? "(absent)"}" chooses ${chosen ?? "nothing"}`, () => {
    assert.equal(negotiate(accept, offers), chosen);
  });
}

test("an offer with parameters meets a range that asks for them", () => {
  const versions = ["application/json;v=1", "application/json;v=2"] as const;
  assert.equal(negotiate('application/json; V="2"', versions), "application/json;v=2");
  assert.deepEqual(parseAccept("a/b;x=1;q=0.25;ext=1"), [
    { type: "a", subtype: "b", parameters: [["x", "1"]], quality: 0.25 },
  ]);
});

test("only clients that name HTML get it", () => {
  assert.equal(prefersHtml("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"), true);
  for (const accept of [undefined, "*/*", "application/json", "application/json, text/html;q=0.9"]) {
    assert.equal(prefersHtml(accept), false);
  }
});

test("reason phrases are those of the registry", () => {
  const newer: Record<number, string> = { 413: "Content Too Large", 422: "Unprocessable Content", 418: "I'm a Teapot" };
  const droppedByRegistry = new Set([509]);
  for (const [code, phrase] of Object.entries(STATUS_CODES)) {
    const status = Number(code);
    if (!droppedByRegistry.has(status)) assert.equal(reasonPhrase(status), newer[status] ?? phrase);
  }
  for (const status of [0, 299, 999, NaN]) assert.equal(reasonPhrase(status), "");
});

const base64Url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

const token = `${base64Url({ alg: "none" })}.${base64Url({ sub: "ü", iat: 1, exp: 2.5, nbf: "x" })}.`;

test("credentials are decoded by scheme", () => {
  const basic = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;
  assert.deepEqual(parseAuthorization(basic("Aladdin:open:sesame")), {
    kind: "basic",
    scheme: "Basic",
    username: "Aladdin",
    password: "open:sesame",
  });
  const latin1 = parseAuthorization(`basic   ${Buffer.from("j\xf6:", "latin1").toString("base64")}`);
  assert.deepEqual(latin1, { kind: "basic", scheme: "basic", username: "jö", password: "" });
  assert.equal(parseAuthorization(basic("no colon")).kind, "other");
  assert.equal(parseAuthorization("Basic !!!").kind, "other");
  const bearer = parseAuthorization(`Bearer ${token}`);
  assert.equal(bearer.kind === "bearer" && bearer.jwt?.payload["sub"], "ü");
  assert.deepEqual(parseAuthorization("bearer opaque"), {
    kind: "bearer",
    scheme: "bearer",
    token: "opaque",
    jwt: undefined,
  });
  assert.deepEqual(parseAuthorization('Digest username="a, b", qop=auth'), {
    kind: "other",
    scheme: "Digest",
    rest: 'username="a, b", qop=auth',
    parameters: [
      ["username", "a, b"],
      ["qop", "auth"],
    ],
  });
  assert.deepEqual(parseAuthorization(""), { kind: "other", scheme: "", rest: "", parameters: [] });
});

test("a token's times are read only when they are numbers", () => {
  const jwt = decodeJwt(token);
  assert.deepEqual([jwt?.header["alg"], jwt?.signature], ["none", ""]);
  assert.deepEqual([jwt?.issuedAtMs, jwt?.expiresAtMs, jwt?.notBeforeMs], [1000, 2500, undefined]);
});

test("invalid tokens are rejected", () => {
  const array = base64Url([]);
  const object = base64Url({});
  for (const text of [
    "",
    "a.b",
    "a.b.c",
    `${object}.${array}.x`,
    `${object}.${object}`,
    `${object}.${object}.x.y`,
    `{}.{}.x`,
    "%.%.%",
  ]) {
    assert.equal(decodeJwt(text), undefined, text);
  }
});

test("every parser handles any text", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: anyCharacter }),
        fc.string({ unit: fc.constantFrom(...'a=;, "\\%:./?&*q0'.split("")) }),
      ),
      (text) => {
        parseCookies(text);
        parseSetCookie(text);
        parseQuery(text);
        parseAccept(text);
        negotiate(text, offers);
        parseAuthorization(text);
        parseHttpDate(text);
        parseCookieDate(text);
      },
    ),
    { numRuns: 1000 },
  );
});

const DATES: readonly (readonly [string, number])[] = [
  ["Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777],
  ["Thu, 01 Jan 1970 00:00:00 GMT", 0],
  ["Wed, 31 Dec 1969 23:59:59 GMT", -1],
  ["Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000],
  ["Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400],
  ["Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799],
  ["Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200],
];

for (const [text, epochS] of DATES) {
  test(`"${text}" is ${epochS}`, () => assert.deepEqual(parseImfFixdate(text), { kind: "date", epochS }));
}

const MALFORMED: readonly string[] = [
  "",
  "2024-02-29T12:00:00Z",
  "Sunday, 06-Nov-94 08:49:37 GMT",
  "Sun Nov  6 08:49:37 1994",
  "06 Nov 1994 08:49:37 GMT",
  "Sun, 06 Nov 1994 08:49:37 UTC",
  "Sun, 06 Nov 1994 08:49:37 gmt",
  "Sun, 06 Nov 1994 08:49:37",
  "Sun, 06 Nov 1994 08:49:37 +0000",
  "sun, 06 Nov 1994 08:49:37 GMT",
  "Sun, 06 nov 1994 08:49:37 GMT",
  "Sun, 6 Nov 1994 08:49:37 GMT",
  "Sun,06 Nov 1994 08:49:37 GMT",
  "Sun, 06 Nov 94 08:49:37 GMT",
  "Sun, 06 Nov 1994 8:49:37 GMT",
  "Sun, 06 Nov 1994 24:00:00 GMT",
  "Sun, 06 Nov 1994 08:60:37 GMT",
  "Sat, 31 Dec 2016 23:59:60 GMT",
  "Sun, 00 Nov 1994 08:49:37 GMT",
  "Thu, 31 Nov 1994 08:49:37 GMT",
  "Wed, 29 Feb 2023 12:00:00 GMT",
  "Thu, 29 Feb 1900 12:00:00 GMT",
  "Sun, 06 Foo 1994 08:49:37 GMT",
  " Sun, 06 Nov 1994 08:49:37 GMT",
  "Sun, 06 Nov 1994 08:49:37 GMT\n",
  "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
  "Sun, ٠٦ Nov 1994 08:49:37 GMT",
];

for (const text of MALFORMED) {
  test(`${JSON.stringify(text)} is no IMF-fixdate`, () => assert.equal(parseImfFixdate(text).kind, "malformed"));
}

test("a weekday that does not agree is told from a malformed date, with the right one", () => {
  const date = parseImfFixdate("Mon, 06 Nov 1994 08:49:37 GMT");
  assert.deepEqual(date, { kind: "weekday-mismatch", epochS: 784_111_777, weekday: "Sun" });
  assert.equal(parseImfFixdate("Wed, 31 Dec 1969 23:59:59 GMT").kind, "date");
  assert.equal(parseImfFixdate("Thu, 31 Dec 1969 23:59:59 GMT").kind, "weekday-mismatch");
});

test("every second from year 0 to 9999 that Node writes is read back", () => {
  const seconds = fc.integer({ min: -62_167_219_200, max: 253_402_300_799 });
  fc.assert(
    fc.property(seconds, (epochS) => {
      assert.deepEqual(parseImfFixdate(new Date(epochS * 1000).toUTCString()), { kind: "date", epochS });
    }),
    { numRuns: 5000 },
  );
});

test("exactly one of the seven weekdays agrees with a day that exists, and none with one that does not", () => {
  fc.assert(
    fc.property(fc.nat(9999), fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 31 }), (year, month, day) => {
      const name = new Date(Date.UTC(2000, month - 1)).toUTCString().slice(8, 11);
      const kinds = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"].map(
        (weekday) =>
          parseImfFixdate(
            `${weekday}, ${String(day).padStart(2, "0")} ${name} ${String(year).padStart(4, "0")} 00:00:00 GMT`,
          ).kind,
      );
      const exists = new Date(`${String(year).padStart(4, "0")}-${String(month).padStart(2, "0")}-01T00:00:00Z`);
      exists.setUTCDate(day);
      const isReal = exists.getUTCMonth() === month - 1;
      assert.equal(kinds.filter((kind) => kind === "date").length, isReal ? 1 : 0);
      assert.equal(kinds.filter((kind) => kind === "malformed").length, isReal ? 0 : 7);
    }),
    { numRuns: 3000 },
  );
});

test("fields for HTTP/2 are in lower case, in order, with repeats, without those of a connection", () => {
  const into = [":status", "200"];
  const fields = ["Set-Cookie", "a=1", "X-B", "One", "Connection", "close", "Keep-Alive", "timeout=5"];
  fields.push("Set-Cookie", "b=2", "Transfer-Encoding", "chunked", "Upgrade", "h2c", "Proxy-Connection", "close");
  appendHttp2Fields([...fields, "HTTP2-Settings", "AAMAAABk", "Host", "a.test"], into);
  assert.deepEqual(into, [":status", "200", "set-cookie", "a=1", "x-b", "One", "set-cookie", "b=2"]);
});

test("TE says trailers or nothing (RFC 9113, 8.2.2)", () => {
  const into: string[] = [];
  appendHttp2Fields(["TE", "trailers", "TE", "gzip", "te", "trailers, deflate"], into);
  assert.deepEqual(into, ["te", "trailers"]);
});

test("pieces of Cookie are one field where the first of them stood (RFC 9113, 8.2.3)", () => {
  const section = [":method", "GET", "cookie", "a=1", "x", "1", "cookie", "b=2", "x", "2", "cookie", "c=3"];
  assert.deepEqual(withoutPseudoFields(section), ["cookie", "a=1; b=2; c=3", "x", "1", "x", "2"]);
});

const CASES: readonly (readonly [string, string[], string, string[]])[] = [
  ["no Vary yet: one is added", ["A", "1"], "Accept", ["A", "1", "Vary", "Accept"]],
  [
    "a member is added to the line that is there",
    ["Vary", "Origin", "A", "1"],
    "Accept",
    ["Vary", "Origin, Accept", "A", "1"],
  ],
  [
    "several lines become one where the first stood",
    ["A", "1", "Vary", "Origin", "B", "2", "vary", "Accept-Encoding"],
    "Accept",
    ["A", "1", "Vary", "Origin, Accept-Encoding, Accept", "B", "2"],
  ],
  ["what is named already is not named twice, in any letter case", ["Vary", "accept"], "Accept", ["Vary", "accept"]],
  [
    "repeated members are named once",
    ["Vary", "Origin", "Vary", "origin,Origin"],
    "Accept",
    ["Vary", "Origin, Accept"],
  ],
  [
    "another name that contains it is another name",
    ["Vary", "Accept-Encoding"],
    "Accept",
    ["Vary", "Accept-Encoding, Accept"],
  ],
  ["empty members are left out", ["Vary", " , Origin,, "], "Accept", ["Vary", "Origin, Accept"]],
  ["an empty line is filled", ["Vary", ""], "Accept", ["Vary", "Accept"]],
  ["an asterisk says everything", ["Vary", "Origin", "Vary", "*"], "Accept", ["Vary", "*"]],
];

for (const [name, fields, added, expected] of CASES) {
  test(`Vary: ${name}`, () => {
    foldVary(fields, added);
    assert.deepEqual(fields, expected);
  });
}

test("Vary: names added in any order appear once each, in one line", () => {
  const names = fc.constantFrom("Accept", "ORIGIN", "Accept-Encoding", "x", "");
  const lines = fc.array(
    fc.tuple(
      fc.constantFrom("Vary", "vary", "Other"),
      fc.array(names).map((list) => list.join(",")),
    ),
  );
  fc.assert(
    fc.property(lines, fc.array(fc.constantFrom("accept", "Origin", "x"), { minLength: 1 }), (pairs, added) => {
      const fields = pairs.flat();
      const wanted = new Set(
        pairs
          .filter(([name]) => name !== "Other")
          .flatMap(([, value]) => value.toLowerCase().split(","))
          .filter((name) => name !== ""),
      );
      for (const name of added) {
        foldVary(fields, name);
        wanted.add(name.toLowerCase());
      }
      const values = fields.filter((_, at) => at % 2 === 1 && fields[at - 1]?.toLowerCase() === "vary");
      assert.equal(values.length, 1);
      assert.deepEqual((values[0] ?? "").toLowerCase().split(", ").toSorted(), [...wanted].toSorted());
      assert.equal(
        fields.filter((name, at) => at % 2 === 0 && name === "Other").length,
        pairs.filter(([name]) => name === "Other").length,
      );
    }),
  );
});

test("a Link names its relation in quotes", () => {
  assert.equal(formatLink("https://a.test/b?c=d", "deprecation"), '<https://a.test/b?c=d>; rel="deprecation"');
});
