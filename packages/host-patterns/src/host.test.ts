import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { canonicalHost, hostPortText, parseHostPort } from "./index.ts";

const good: [text: string, host: string, port: number | undefined][] = [
  ["example.com", "example.com", undefined],
  ["Example.COM:8080", "example.com", 8080],
  ["example.com.:1", "example.com.", 1],
  ["a_b.test:65535", "a_b.test", 65535],
  ["127.0.0.1:80", "127.0.0.1", 80],
  ["[::1]", "::1", undefined],
  ["[2001:DB8::1]:443", "2001:db8::1", 443],
  ["[fe80::1%25eth0]:443", "fe80::1%eth0", 443],
  ["[fe80::1%eth0]", "fe80::1%eth0", undefined],
  ["Bücher.de:443", "xn--bcher-kva.de", 443],
];

for (const [text, host, port] of good) {
  test(`"${text}" is host ${host}, port ${port ?? "not given"}`, () => {
    assert.deepEqual(parseHostPort(text), { host, port });
  });
}

const bad: [text: string, issue: RegExp][] = [
  ["", /missing/],
  [":80", /missing/],
  [".", /missing/],
  ["user@example.com", /User information/],
  ["a:b@[::1]:443", /User information/],
  ["example.com:", /1 to 65535/],
  ["example.com:0", /1 to 65535/],
  ["example.com:65536", /1 to 65535/],
  ["example.com:080", /1 to 65535/],
  ["example.com:+80", /1 to 65535/],
  ["example.com: 80", /1 to 65535/],
  ["example.com:80x", /1 to 65535/],
  ["example.com:٣", /1 to 65535/],
  ["::1", /brackets/],
  ["a:b:c", /brackets/],
  ["[::1", /closing bracket/],
  ["[::1]80", /Only a port/],
  ["[::1]]", /Only a port/],
  ["[1.2.3.4]", /not an IPv6/],
  ["[example.com]:443", /not an IPv6/],
  ["[::1%]", /not an IPv6/],
  ["[::1%a\r\nb]", /not an IPv6/],
  ["exa mple.com", /character/],
  ["example.com/path", /character/],
  ["a\0b", /character/],
  ["a%41b", /character/],
  ["a..b", /empty part/],
  ["*.example.com", /character/],
  [`${"a".repeat(63)}.`.repeat(4) + "test", /longer than 253/],
];

for (const [text, issue] of bad) {
  test(`${JSON.stringify(text).slice(0, 40)} is refused with a sentence`, () => {
    const result = parseHostPort(text);
    assert.ok("issue" in result);
    assert.match(result.issue, issue);
    assert.match(result.issue, /\.$/);
  });
}

test("parsed hosts can be formatted again, and any text is handled", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[a-z.:[\]@%0-9]{1,12}$/)), (text) => {
      const result = parseHostPort(text);
      if ("issue" in result) return;
      const host = result.host.includes(":") ? `[${result.host}]` : result.host;
      const port = result.port === undefined ? "" : `:${result.port}`;
      assert.deepEqual(parseHostPort(host + port), result);
    }),
    { numRuns: 1000 },
  );
});

const canonicals: [host: string, canonical: string][] = [
  ["Example.COM.", "example.com"],
  ["BÜCHER.de", "xn--bcher-kva.de"],
  ["xn--bcher-kva.de", "xn--bcher-kva.de"],
  ["ｅｘａｍｐｌｅ.com", "example.com"],
  ["[::0001]", "::1"],
  ["127.1", "127.0.0.1"],
  ["0x7f.1", "127.0.0.1"],
  ["2130706433", "127.0.0.1"],
  ["0177.0.0.1", "127.0.0.1"],
  ["1.2.3.4.", "1.2.3.4"],
  ["foo.123", "foo.123"],
  ["1.2.3.4.5", "1.2.3.4.5"],
  ["a/ü", "a/ü"],
  ["", ""],
];

for (const [host, expected] of canonicals) {
  test(`the host "${host}" is compared as "${expected}"`, () => {
    assert.equal(canonicalHost(host), expected);
    assert.equal(canonicalHost(expected), expected);
  });
}

test("a host and a port are written as they are read, IPv6 in brackets, an implied port left out", () => {
  for (const [host, port, implied, text] of [
    ["example.com", 8080, undefined, "example.com:8080"],
    ["127.0.0.1", 443, 443, "127.0.0.1"],
    ["127.0.0.1", 443, 80, "127.0.0.1:443"],
    ["2001:db8::1", 80, undefined, "[2001:db8::1]:80"],
    ["::1", 80, 80, "[::1]"],
  ] as const) {
    assert.equal(hostPortText(host, port, implied), text);
    assert.deepEqual(parseHostPort(text), { host, port: port === implied ? undefined : port });
  }
});
