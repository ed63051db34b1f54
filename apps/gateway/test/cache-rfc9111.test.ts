import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldValue } from "@headworks/http1";
import { FakeClock, startOrigin } from "@headworks/testkit";
import { serving, startGateway } from "./gateway-rig.ts";
import { proxied, type RouteInput } from "./route-documents.ts";

type Fields = Readonly<Record<string, string | readonly string[]>>;

/** A request, what its origin would respond to it, and the response that the client gets. */
interface Step {
  readonly waitS?: number;
  readonly method?: string;
  readonly sends?: readonly string[];
  /** Fields of the origin's response; `Date` is of now unless it is here. Absent: as in the step before. */
  readonly origin?: Fields;
  readonly status?: number;
  /** Status and X-Cache. */
  readonly gets: string;
  readonly has?: Readonly<Record<string, string | undefined>>;
  /** Fields of the request that the origin got for this step. */
  readonly asks?: Readonly<Record<string, string | undefined>>;
}

const TTL_S = 100;
const START_MS = Date.UTC(2026, 0, 1);
const dateAt = (offsetS: number): string => new Date(START_MS + offsetS * 1000).toUTCString();
const miss = (origin: Fields = {}, more: Partial<Step> = {}): Step => ({ origin, gets: "200 miss", ...more });
const later = (waitS: number, gets: string, more: Partial<Step> = {}): Step => ({ waitS, gets, ...more });
const cached = (seconds: string): Fields => ({ "Cache-Control": `max-age=${seconds}` });

type Case = readonly [rule: string, steps: readonly Step[], cache?: Partial<NonNullable<RouteInput["cache"]>>];

const CASES: Readonly<Record<string, readonly Case[]>> = {
  "3 storing": [
    ["no-store is not stored", [miss({ "Cache-Control": "no-store" }), miss()]],
    ["no-store in a second line is not stored", [miss({ "Cache-Control": ["max-age=9", "No-Store"] }), miss()]],
    ["private is not stored", [miss({ "Cache-Control": "private, max-age=9" }), miss()]],
    [
      "must-understand lets a cache that knows the status ignore no-store (5.2.2.3)",
      [miss({ "Cache-Control": "no-store, must-understand, max-age=9" }), later(1, "200 hit")],
    ],
    ["206 is not stored", [miss({ "Content-Range": "bytes 0-3/9" }, { status: 206, gets: "206 miss" }), miss()]],
    ["a response with Set-Cookie is not stored", [miss({ "Set-Cookie": "a=b", ...cached("9") }), miss()]],
    [
      "a request with no-store is not stored (5.2.1.5)",
      [miss(cached("9"), { sends: ["Cache-Control: no-store"] }), miss(cached("9")), later(1, "200 hit")],
    ],
    [
      "private with field names: the response is stored without them (5.2.2.7)",
      [
        miss(
          {
            "Cache-Control": 'max-age=9, private="Set-Cookie, X-Own"',
            "Set-Cookie": "a=b",
            "X-Own": "1",
            "X-All": "2",
          },
          { has: { "x-own": "1", "set-cookie": "a=b" } },
        ),
        later(1, "200 hit", { has: { "x-own": undefined, "set-cookie": undefined, "x-all": "2" } }),
      ],
    ],
    [
      "no-cache with field names: the response is sent without them (5.2.2.4)",
      [
        miss({ "Cache-Control": 'no-cache="X-Own", max-age=9', "X-Own": "1" }),
        later(1, "200 hit", { has: { "x-own": undefined } }),
      ],
    ],
    [
      "no-cache beside no-cache with field names needs validation",
      [miss({ "Cache-Control": 'no-cache="X-Own", no-cache, max-age=9' }), miss()],
    ],
    [
      "a quoted comma ends no directive",
      [miss({ "Cache-Control": 'ext="a, no-store, b", max-age=9' }), later(1, "200 hit")],
    ],
  ],
  "3.5 authenticated requests": [
    [
      "a request with Authorization is neither stored nor served",
      [
        miss({ "Cache-Control": "public, max-age=9" }, { sends: ["Authorization: Basic eDp5"], gets: "200 bypass" }),
        miss(),
        later(0, "200 bypass", { sends: ["Authorization: Basic eDp5"] }),
      ],
    ],
  ],
  "3.2 updating stored fields": [
    [
      "304 replaces stored fields, adds new ones and keeps those that describe the body",
      [
        miss({ ...cached("5"), ETag: '"1"', "X-Old": "kept", "X-New": "a", "Content-Type": "text/plain" }),
        later(6, "200 revalidated", {
          status: 304,
          origin: { ...cached("50"), ETag: '"1"', "X-New": ["b", "c"], "X-Added": "d", "Content-Type": "text/html" },
          asks: { "if-none-match": '"1"' },
          has: { "x-old": "kept", "x-new": "b, c", "x-added": "d", "content-type": "text/plain", age: "0" },
        }),
        later(40, "200 hit", { has: { "x-new": "b, c", age: "40" } }),
        later(11, "200 revalidated", { origin: { ETag: '"1"' }, status: 304 }),
      ],
    ],
    [
      "Set-Cookie of a 304 goes to its client alone",
      [
        miss({ ...cached("5"), ETag: '"1"' }),
        later(6, "200 revalidated", {
          status: 304,
          origin: { ...cached("5"), "Set-Cookie": "a=b" },
          has: { "set-cookie": "a=b" },
        }),
        later(1, "200 hit", { has: { "set-cookie": undefined } }),
      ],
    ],
  ],
  "4.1 Vary": [
    ["Vary: * is not stored", [miss({ Vary: "*", ...cached("9") }), miss()]],
    ["a field that is no part of the key is not stored", [miss({ Vary: "X-Other", ...cached("9") }), miss()]],
    [
      "fields that match are a hit",
      [
        miss({ Vary: "X-Tenant", ...cached("9") }, { sends: ["X-Tenant: a"] }),
        miss({ Vary: "X-Tenant", ...cached("9") }, { sends: ["X-Tenant: b"] }),
        later(0, "200 hit", { sends: ["x-tenant: a"] }),
      ],
      { vary: ["X-Tenant"] },
    ],
    [
      "one representation of each coding, for all clients that accept it (RFC 9110, 12.5.3)",
      [
        miss({ "Content-Encoding": "br", Vary: "Accept-Encoding" }, { sends: ["Accept-Encoding: gzip, deflate, br"] }),
        later(1, "200 hit", { sends: ["Accept-Encoding: br;q=1.0,gzip"], has: { "content-encoding": "br" } }),
        later(0, "200 hit", { sends: ["Accept-Encoding: gzip, deflate, br, zstd"], has: { "content-encoding": "br" } }),
        miss({ "Content-Encoding": "gzip", Vary: "Accept-Encoding" }, { sends: ["Accept-Encoding: gzip"] }),
        miss({ Vary: "Accept-Encoding" }),
        later(1, "200 hit", { sends: ["Accept-Encoding: x-gzip;q=0.5"], has: { "content-encoding": "gzip" } }),
        later(0, "200 hit", { has: { "content-encoding": undefined } }),
        later(0, "200 hit", { sends: ["Accept-Encoding: br"], has: { "content-encoding": "br" } }),
        later(0, "200 hit", { sends: ["Accept-Encoding: gzip;q=0.1, br;q=0.9"], has: { "content-encoding": "br" } }),
        later(0, "200 hit", { sends: ["Accept-Encoding: gzip;q=0"], has: { "content-encoding": undefined } }),
      ],
    ],
    [
      "a client gets the coding that its origin chose for it, and is validated with that",
      [
        miss(
          { "Content-Encoding": "gzip", ETag: '"g"', Vary: "Accept-Encoding" },
          { sends: ["Accept-Encoding: gzip, br"] },
        ),
        miss({ "Content-Encoding": "br", ETag: '"b"', Vary: "Accept-Encoding" }, { sends: ["Accept-Encoding: br"] }),
        later(TTL_S + 1, "200 revalidated", {
          sends: ["Accept-Encoding: br, gzip"],
          status: 304,
          origin: { ETag: '"g"', Vary: "Accept-Encoding" },
          asks: { "if-none-match": '"g"' },
          has: { "content-encoding": "gzip" },
        }),
        later(0, "200 hit", { sends: ["Accept-Encoding: br, gzip"], has: { etag: '"g"' } }),
        later(0, "200 hit", { sends: ["Accept-Encoding: gzip, zstd"], has: { etag: '"g"' } }),
        later(0, "200 revalidated", {
          sends: ["Accept-Encoding: br"],
          status: 304,
          origin: { ETag: '"b"' },
          asks: { "if-none-match": '"b"' },
        }),
      ],
    ],
    [
      "a response without a coding that varies on it does not displace that of clients that accept others",
      [
        miss({ Vary: "Accept-Encoding" }, { sends: ["Accept-Encoding: gzip"] }),
        miss({ Vary: "Accept-Encoding" }),
        later(1, "200 hit", { sends: ["Accept-Encoding: gzip"] }),
        later(0, "200 hit"),
      ],
    ],
    ["a response in two codings is not stored", [miss({ "Content-Encoding": "gzip, br" }), miss()]],
    [
      "a coded response goes to no client that does not accept it, whether or not it says Vary",
      [miss({ "Content-Encoding": "gzip" }, { sends: ["Accept-Encoding: gzip"] }), miss()],
    ],
  ],
  "4.2.1 freshness": [
    ["max-age=0 is stale at once", [miss(cached("0")), miss()]],
    ["max-age below ttl_secs", [miss(cached("5")), later(4, "200 hit"), later(1, "200 miss")]],
    ["max-age above ttl_secs", [miss(cached("500")), later(499, "200 hit"), later(1, "200 miss")]],
    ["s-maxage before max-age", [miss({ "Cache-Control": "max-age=50, s-maxage=5" }), later(5, "200 miss")]],
    [
      "max-age before Expires",
      [miss({ ...cached("50"), Expires: dateAt(-10) }), later(49, "200 hit"), later(1, "200 miss")],
    ],
    ["Expires in the past", [miss({ Expires: dateAt(-1) }), miss()]],
    ["Expires that is no date", [miss({ Expires: "0" }), miss()]],
    ["two Expires", [miss({ Expires: [dateAt(50), dateAt(60)] }), miss()]],
    ["Expires counts from Date", [miss({ Expires: dateAt(30) }), later(29, "200 hit"), later(1, "200 miss")]],
    [
      "Expires counts from a Date of another clock",
      [miss({ Date: dateAt(3600), Expires: dateAt(3630) }), later(29, "200 hit"), later(1, "200 miss")],
    ],
    [
      "Expires in an obsolete form (RFC 9110, 5.6.7)",
      [miss({ Expires: "Thursday, 01-Jan-26 00:00:30 GMT" }), later(29, "200 hit"), later(1, "200 miss")],
    ],
    ["max-age that is no number is stale", [miss(cached("soon")), miss()]],
    ["max-age without a number is stale", [miss({ "Cache-Control": "max-age" }), miss()]],
    ["max-age below 0 is stale", [miss(cached("-5")), miss()]],
    ["a quoted max-age is a number", [miss(cached('"5"')), later(4, "200 hit"), later(1, "200 miss")]],
    ["a max-age beyond 2^31 is 2^31", [miss(cached("99999999999999999999")), later(3000, "200 hit")]],
    ["of two max-age the first", [miss({ "Cache-Control": ["max-age=5", "max-age=50"] }), later(5, "200 miss")]],
    ["names in upper case", [miss({ "Cache-Control": "MAX-AGE=5" }), later(4, "200 hit"), later(1, "200 miss")]],
  ],
  "4.2.2 without freshness of its own": [
    ["ttl_secs", [miss(), later(TTL_S - 1, "200 hit"), later(1, "200 miss")]],
    ["public says nothing of freshness", [miss({ "Cache-Control": "public" }), later(TTL_S - 1, "200 hit")]],
    ["Age counts", [miss({ Age: "60" }), later(39, "200 hit", { has: { age: "99" } }), later(1, "200 miss")]],
    ["a Date in the past does not count", [miss({ Date: dateAt(-3600) }), later(TTL_S - 1, "200 hit")]],
  ],
  "4.2.3 age": [
    [
      "Age of another cache",
      [
        miss({ ...cached("60"), Age: "50" }),
        later(9, "200 hit", { has: { age: "59" } }),
        miss(undefined, { waitS: 1 }),
      ],
    ],
    ["an Age beyond the lifetime is stale at once", [miss({ ...cached("60"), Age: "60" }), miss()]],
    [
      "a Date in the past is an age",
      [miss({ ...cached("60"), Date: dateAt(-50) }), later(9, "200 hit", { has: { age: "59" } }), later(1, "200 miss")],
    ],
    [
      "a Date in the future is none",
      [miss({ ...cached("60"), Date: dateAt(50) }), later(59, "200 hit", { has: { age: "59" } })],
    ],
    [
      "an Age that is no number is none",
      [miss({ ...cached("60"), Age: "7.5" }), later(9, "200 hit", { has: { age: "9" } })],
    ],
    [
      "of several Ages the first",
      [miss({ ...cached("60"), Age: "10, 50" }), later(9, "200 hit", { has: { age: "19" } })],
    ],
    ["a miss has the Age of its upstream", [miss({ ...cached("60"), Age: "7" }, { has: { age: "7" } })]],
  ],
  "4.2.4 stale responses": [
    [
      "must-revalidate is not sent stale",
      [
        miss({ "Cache-Control": "max-age=5, must-revalidate" }),
        later(6, "200 miss", { sends: ["Cache-Control: max-stale"] }),
      ],
      { stale_while_revalidate_secs: 60 },
    ],
    [
      "stale_while_revalidate_secs begins when the response is stale",
      [miss(cached("5")), later(6, "200 stale")],
      { stale_while_revalidate_secs: 60 },
    ],
    [
      "stale-while-revalidate of the response is before that of the route (RFC 5861)",
      [miss({ "Cache-Control": "max-age=5, stale-while-revalidate=2" }), later(7, "200 miss")],
      { stale_while_revalidate_secs: 60 },
    ],
    [
      "stale-while-revalidate of the response",
      [miss({ "Cache-Control": "max-age=5, stale-while-revalidate=9" }), later(6, "200 stale", { has: { age: "6" } })],
    ],
  ],
  "4.3 validation": [
    [
      "Last-Modified without ETag",
      [
        miss({ ...cached("5"), "Last-Modified": dateAt(-99) }),
        later(6, "200 revalidated", {
          status: 304,
          origin: cached("5"),
          asks: { "if-modified-since": dateAt(-99), "if-none-match": undefined },
        }),
        later(1, "200 hit"),
      ],
    ],
    [
      "the client's conditions stay with the cache",
      [
        miss({ ...cached("5"), ETag: '"1"' }),
        later(6, "304 revalidated", {
          sends: ['If-None-Match: "0", W/"1"', `If-Modified-Since: ${dateAt(0)}`],
          status: 304,
          origin: { ...cached("5"), ETag: '"1"' },
          asks: { "if-none-match": '"1"', "if-modified-since": undefined },
        }),
      ],
    ],
    [
      "another response takes the place of the stale one",
      [
        miss({ ...cached("5"), ETag: '"1"' }),
        later(6, "200 miss", {
          origin: { ...cached("5"), ETag: '"2"' },
          asks: { "if-none-match": '"1"' },
          has: { etag: '"2"' },
        }),
        later(1, "200 hit", { has: { etag: '"2"' } }),
      ],
    ],
    [
      "an error goes to the client, and the stale response stays",
      [
        miss({ ...cached("5"), ETag: '"1"' }),
        later(6, "503 miss", { status: 503, origin: {} }),
        later(1, "200 revalidated", { status: 304, origin: cached("5") }),
      ],
    ],
    [
      "no-cache is stored and validated for each use (5.2.2.4)",
      [
        miss({ "Cache-Control": "no-cache", ETag: '"1"' }),
        later(0, "200 revalidated", { status: 304, asks: { "if-none-match": '"1"' } }),
        later(0, "200 revalidated", { status: 304 }),
      ],
    ],
    [
      "a 304 that makes the response vary on more than the key ends it",
      [
        miss({ ...cached("5"), ETag: '"1"' }),
        later(6, "200 revalidated", { status: 304, origin: { ...cached("5"), Vary: "X-Other" } }),
        miss(cached("5"), { asks: { "if-none-match": undefined } }),
      ],
    ],
    [
      "a 304 with another tag confirms nothing (4.3.4)",
      [
        miss({ ...cached("5"), ETag: '"1"' }),
        later(6, "200 revalidated", { status: 304, origin: { ...cached("5"), ETag: '"2"' }, has: { etag: '"1"' } }),
        miss(cached("5"), { asks: { "if-none-match": undefined } }),
      ],
    ],
    ["no-cache without a validator is not stored", [miss({ "Cache-Control": "no-cache" }), miss()]],
    [
      "a 304 with no-store ends it",
      [
        miss({ ...cached("5"), ETag: '"1"' }),
        later(6, "200 revalidated", { status: 304, origin: { "Cache-Control": "no-store" } }),
        miss({}, { asks: { "if-none-match": undefined } }),
      ],
    ],
    [
      "If-None-Match compares weakly (4.3.2)",
      [
        miss({ ...cached("5"), ETag: 'W/"1"' }),
        later(0, "304 hit", { sends: ['If-None-Match: "1"'], has: { etag: 'W/"1"', "cache-control": "max-age=5" } }),
      ],
    ],
    [
      "If-Modified-Since without Last-Modified compares with Date (4.3.2)",
      [miss(cached("5")), later(0, "304 hit", { sends: [`If-Modified-Since: ${dateAt(0)}`] })],
    ],
    [
      "Range goes to the origin, whatever is stored (4)",
      [
        miss({ ...cached("5"), ETag: '"1"' }),
        later(0, "206 bypass", {
          sends: ["Range: bytes=0-1", 'If-Range: "1"'],
          status: 206,
          asks: { range: "bytes=0-1", "if-range": '"1"' },
        }),
        later(0, "200 hit", { status: 200 }),
      ],
    ],
  ],
  "4.4 invalidation": [
    ...["POST", "PUT", "PATCH", "DELETE"].map((method): Case => [
      `${method} that succeeds`,
      [miss(cached("50")), later(0, "200 bypass", { method }), later(0, "200 miss")],
    ]),
    [
      "a redirect is a success",
      [
        miss(cached("50")),
        later(0, "303 bypass", { method: "POST", status: 303 }),
        later(0, "200 miss", { status: 200 }),
      ],
    ],
    [
      "an error changes nothing",
      [miss(cached("50")), later(0, "409 bypass", { method: "PUT", status: 409 }), later(0, "200 hit")],
    ],
    ["OPTIONS is safe", [miss(cached("50")), later(0, "200 bypass", { method: "OPTIONS" }), later(0, "200 hit")]],
  ],
  "4 HEAD": [
    [
      "a stored response to GET serves it",
      [
        miss({ ...cached("5"), "X-Own": "1" }),
        later(1, "200 hit", { method: "HEAD", has: { "x-own": "1", age: "1", "content-length": "4" } }),
      ],
    ],
    [
      "a response to it is not stored",
      [later(0, "200 miss", { method: "HEAD", origin: cached("50") }), later(0, "200 miss")],
    ],
    ["a stale one goes to the origin", [miss(cached("5")), later(6, "200 miss", { method: "HEAD" })]],
  ],
  "5.2.1 request directives": [
    [
      "no-cache",
      [
        miss(cached("50")),
        later(1, "200 miss", { sends: ["Cache-Control: no-cache"] }),
        later(1, "200 hit", { has: { age: "1" } }),
      ],
    ],
    [
      "no-cache with a validator asks with it",
      [
        miss({ ...cached("50"), ETag: '"1"' }),
        later(1, "200 revalidated", {
          sends: ["Cache-Control: no-cache"],
          status: 304,
          asks: { "if-none-match": '"1"' },
        }),
        later(1, "200 hit", { has: { age: "1" } }),
      ],
    ],
    [
      "Pragma: no-cache without Cache-Control (5.4)",
      [miss(cached("50")), later(1, "200 miss", { sends: ["Pragma: no-cache"] })],
    ],
    [
      "Pragma is ignored beside Cache-Control (5.4)",
      [miss(cached("50")), later(1, "200 hit", { sends: ["Pragma: no-cache", "Cache-Control: max-age=9"] })],
    ],
    [
      "max-age",
      [
        miss(cached("50")),
        later(9, "200 hit", { sends: ["Cache-Control: max-age=9"] }),
        later(1, "200 miss", { sends: ["Cache-Control: max-age=9"] }),
      ],
    ],
    [
      "min-fresh",
      [
        miss(cached("50")),
        later(40, "200 hit", { sends: ["Cache-Control: min-fresh=10"] }),
        later(1, "200 miss", { sends: ["Cache-Control: min-fresh=10"] }),
      ],
    ],
    [
      "max-stale",
      [
        miss({ ...cached("50"), ETag: '"1"' }),
        later(55, "200 stale", { sends: ["Cache-Control: max-stale=5"], has: { age: "55" } }),
        later(1, "200 miss", { sends: ["Cache-Control: max-stale=5"] }),
      ],
    ],
    [
      "only-if-cached",
      [
        later(0, "504 miss", { sends: ["Cache-Control: only-if-cached"] }),
        miss(cached("50")),
        later(1, "200 hit", { sends: ["Cache-Control: only-if-cached"] }),
        later(50, "504 miss", { sends: ["Cache-Control: only-if-cached"] }),
      ],
    ],
  ],
  "override: ttl_secs alone decides": [
    ...[
      cached("0"),
      cached("500"),
      { "Cache-Control": "s-maxage=5" },
      { Expires: dateAt(-10) },
      { "CDN-Cache-Control": "max-age=5" },
      { Age: "60" },
      { ...cached("60"), Date: dateAt(-3600) },
    ].map((origin): Case => [
      `over ${Object.entries(origin).join(" ")}`,
      [miss(origin), later(TTL_S - 1, "200 hit"), later(1, "200 miss")],
      { override: true },
    ]),
    [
      "over a client that reloads",
      [
        miss(cached("0")),
        later(1, "200 hit", { sends: ["Cache-Control: no-cache"] }),
        later(1, "200 hit", { sends: ["Pragma: no-cache"] }),
      ],
      { override: true },
    ],
    ...["no-store", "private", "no-cache"].map((directive): Case => [
      `not over ${directive}`,
      [miss({ "Cache-Control": directive, ETag: '"1"' }), miss()],
      { override: true },
    ]),
    [
      "not over must-revalidate",
      [miss({ "Cache-Control": "must-revalidate" }), later(TTL_S, "200 miss")],
      { override: true, stale_while_revalidate_secs: 60 },
    ],
  ],
  "RFC 9213, targeted fields": [
    [
      "CDN-Cache-Control in place of Cache-Control",
      [
        miss({ ...cached("5"), "CDN-Cache-Control": "max-age=50" }, { has: { "cdn-cache-control": "max-age=50" } }),
        later(49, "200 hit"),
        later(1, "200 miss"),
      ],
    ],
    [
      "CDN-Cache-Control in place of no-store",
      [miss({ "Cache-Control": "no-store", "CDN-Cache-Control": "max-age=50" }), later(49, "200 hit")],
    ],
    [
      "CDN-Cache-Control: no-store in place of max-age",
      [miss({ ...cached("50"), "CDN-Cache-Control": "no-store" }), miss()],
    ],
    [
      "CDN-Cache-Control in place of Expires",
      [miss({ Expires: dateAt(-5), "CDN-Cache-Control": "public" }), later(TTL_S - 1, "200 hit"), later(1, "200 miss")],
    ],
    [
      "in several lines",
      [miss({ "CDN-Cache-Control": ["max-age=5", "must-revalidate"] }), later(4, "200 hit"), later(1, "200 miss")],
    ],
    ["the last of two values", [miss({ "CDN-Cache-Control": "max-age=5, max-age=50" }), later(49, "200 hit")]],
    [
      "parameters and unknown directives are ignored",
      [miss({ "CDN-Cache-Control": "max-age=50;x=1, new=(1 2)" }), later(49, "200 hit")],
    ],
    ...[
      "",
      "max-age=50, &&&",
      'max-age="50"',
      "max-age=5.0",
      "max-age=-5",
      "max-age",
      "MAX-AGE=50",
      "no-store=1",
      "max-age =50",
    ].map((value): Case => [
      `"${value}" is invalid and ignored`,
      [miss({ ...cached("5"), "CDN-Cache-Control": value }), later(4, "200 hit"), later(1, "200 miss")],
    ]),
  ],
};

for (const [section, cases] of Object.entries(CASES)) {
  for (const [rule, steps, cache] of cases) {
    test(`RFC 9111, ${section}: ${rule}`, async () => {
      await runSteps(steps, cache ?? {});
    });
  }
}

async function runSteps(steps: readonly Step[], cache: Partial<NonNullable<RouteInput["cache"]>>): Promise<void> {
  const clock = new FakeClock(START_MS);
  let response: { origin: Fields; status: number } = { origin: {}, status: 200 };
  await using origin = await startOrigin({
    handler: (request, out) => {
      request.resume();
      out.setHeader("Date", new Date(clock.now()).toUTCString());
      for (const [name, value] of Object.entries(response.origin)) out.setHeader(name, value);
      out.statusCode = response.status;
      out.end(out.statusCode === 304 ? "" : "body");
    },
  });
  const routes = [proxied("api", "/", { cache: { ttl_secs: TTL_S, ...cache } })];
  await using gateway = await startGateway({ ...serving("api", [origin.port]), routes }, { clock });
  for (const [at, step] of steps.entries()) {
    const { waitS = 0, method, sends = [], gets, has = {}, asks } = step;
    response = {
      origin: step.origin ?? response.origin,
      status: step.status ?? (step.origin === undefined ? response.status : 200),
    };
    await clock.advance(waitS * 1000);
    const askedBefore = origin.requests.length;
    const reply = await gateway.send({ path: "/x", fields: sends, ...(method === undefined ? {} : { method }) });
    assert.equal(`${reply.status} ${reply.header("x-cache")}`, gets, `step ${at + 1}`);
    for (const [name, value] of Object.entries(has)) {
      const values = reply.headers.filter(([each]) => each.toLowerCase() === name).map(([, each]) => each);
      assert.equal(values.length === 0 ? undefined : values.join(", "), value, `${name} of step ${at + 1}`);
    }
    const isServedHere = gets.endsWith("hit") || gets === "504 miss";
    // A stale one is fetched again meanwhile, or not.
    if (!gets.endsWith("stale")) {
      assert.equal(origin.requests.length - askedBefore, isServedHere ? 0 : 1, `step ${at + 1}`);
    }
    if (reply.status === 200 && method !== "HEAD") assert.equal(reply.body.toString(), "body", `step ${at + 1}`);
    const { rawHeaders = [] } = origin.requests.at(-1) ?? {};
    for (const [name, value] of Object.entries(asks ?? {})) {
      assert.equal(fieldValue(rawHeaders, name), value, `${name} that the origin got in step ${at + 1}`);
    }
  }
}
