import assert from "node:assert/strict";
import { test } from "node:test";
import { parseEgressUrl } from "./egress-url.ts";

const good: [
  text: string,
  host: string,
  port: number,
  isSecure: boolean,
  authority: string,
  target: string,
  shown: string,
][] = [
  ["http://h.test", "h.test", 80, false, "h.test", "/", "http://h.test/"],
  ["HTTPS://H.Test/x", "h.test", 443, true, "h.test", "/x", "https://h.test/x"],
  ["http://h.test:80/x", "h.test", 80, false, "h.test", "/x", "http://h.test/x"],
  ["https://h.test:8443?a=b", "h.test", 8443, true, "h.test:8443", "/?a=b", "https://h.test:8443/"],
  [
    "http://h.test/a/../b/%7e?q=%41#frag",
    "h.test",
    80,
    false,
    "h.test",
    "/a/../b/%7e?q=%41",
    "http://h.test/a/../b/%7e",
  ],
  ["http://h.test/ü?x=ö", "h.test", 80, false, "h.test", "/%C3%BC?x=%C3%B6", "http://h.test/%C3%BC"],
  ["http://bücher.test/", "xn--bcher-kva.test", 80, false, "xn--bcher-kva.test", "/", "http://xn--bcher-kva.test/"],
  ["http://[::1]:8080/x", "::1", 8080, false, "[::1]:8080", "/x", "http://[::1]:8080/x"],
  ["http://[::ffff:127.0.0.1]/", "::ffff:7f00:1", 80, false, "[::ffff:7f00:1]", "/", "http://[::ffff:7f00:1]/"],
  ["http://127.1/", "127.0.0.1", 80, false, "127.0.0.1", "/", "http://127.0.0.1/"],
  ["http://0x7f000001/", "127.0.0.1", 80, false, "127.0.0.1", "/", "http://127.0.0.1/"],
  ["http://2130706433/", "127.0.0.1", 80, false, "127.0.0.1", "/", "http://127.0.0.1/"],
  ["http://0177.0.0.1/", "127.0.0.1", 80, false, "127.0.0.1", "/", "http://127.0.0.1/"],
  ["http://１２７.0.0.1/", "127.0.0.1", 80, false, "127.0.0.1", "/", "http://127.0.0.1/"],
];
for (const [text, host, port, isSecure, authority, target, shown] of good) {
  test(`${text} is parsed`, () => {
    assert.deepEqual(parseEgressUrl(text), { host, port, isSecure, authority, target, shown });
  });
}

const bad: [text: string, issue: RegExp][] = [
  ["", /absolute/],
  ["/hook", /absolute/],
  ["//h.test/hook", /absolute/],
  ["h.test/hook", /absolute/],
  ["ftp://h.test/", /absolute/],
  ["file:///etc/passwd", /absolute/],
  ["http:h.test", /absolute/],
  ["https:/h.test", /absolute/],
  ["unix:http://h.test", /absolute/],
  [" http://h.test", /absolute/],
  ["http://h.test/a b", /white space/],
  ["http://h.test/a\r\nX: y", /white space/],
  ["http://h.test\\@evil.test/", /white space, a backslash/],
  ["http://h.test/\0", /control character/],
  ["http://user@h.test/", /user name/],
  ["http://user:pw@h.test/", /user name/],
  ["http://@h.test/", /user name/],
  ["http://", /host/],
  ["http:///x", /host/],
  ["http://h.test:0/", /1 to 65535/],
  ["http://h.test:65536/", /host or port/],
  ["http://h.test:x/", /host or port/],
  ["http://256.1.1.1/", /host or port/],
  ["http://[::1/", /host or port/],
  ["http://[fe80::1%eth0]/", /host or port/],
];
for (const [text, issue] of bad) {
  test(`${JSON.stringify(text)} is refused with a sentence that does not repeat it`, () => {
    const result = parseEgressUrl(text);
    assert.ok("issue" in result);
    assert.match(result.issue, issue);
    assert.doesNotMatch(result.issue, /pw|evil/);
  });
}
