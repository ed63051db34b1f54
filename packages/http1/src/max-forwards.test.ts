import assert from "node:assert/strict";
import { test } from "node:test";
import { countedDown, countDownForwards, isLastRecipient, tracedRequest } from "./index.ts";

const COUNTERS: readonly (readonly [method: string, sent: string, forwarded: string, isLast: boolean])[] = [
  ["OPTIONS", "1", "0", false],
  ["OPTIONS", "10", "9", false],
  ["TRACE", "3", "2", false],
  ["TRACE", "0", "0", true],
  ["OPTIONS", "00", "0", true],
  ["OPTIONS", "99999999999999999999", "2147483647", false],
  ["OPTIONS", "-1", "-1", false],
  ["OPTIONS", "0x1", "0x1", false],
  ["OPTIONS", "", "", false],
  ["GET", "0", "0", false],
  ["GET", "7", "7", false],
  ["options", "0", "0", false],
];
for (const [method, sent, forwarded, isLast] of COUNTERS) {
  test(`Max-Forwards "${sent}" of ${method} is forwarded as "${forwarded}"${isLast ? ", if at all" : ""}`, () => {
    const fields = ["A", "1", "MAX-Forwards", sent];
    assert.equal(isLastRecipient(method, fields), isLast);
    assert.equal(countedDown(method, sent), forwarded);
    countDownForwards(method, fields);
    assert.deepEqual(fields, ["A", "1", "MAX-Forwards", forwarded]);
  });
}

test("TRACE shows the request as it came, without what may be secret", () => {
  const shown = ["Host", "a.test", "Via", "1.1 edge", "Max-Forwards", "0", "X-Mine", "\xe9", "Accept", "*/*"];
  const hidden = [
    ["Authorization", "Proxy-Authorization", "Cookie", "Cookie2", "X-Api-Key", "X-Edge-Token", "X-Client-Secret"],
    [
      "X-Forwarded-For",
      "X-Real-IP",
      "Forwarded",
      "X-Amz-Signature",
      "Session-Id",
      "X-CSRF",
      "Ocp-Apim-Subscription-Key",
    ],
    ["X-Own", "CF-Connecting-IP", "X-SSL-Client-Cert"],
  ].flat();
  const fields = [...hidden.flatMap((name) => [name, "s3cret"]), ...shown];
  const text = tracedRequest({ method: "TRACE", target: "/a?b", version: "1.1", fields }, (name) => name === "x-own");
  assert.equal(
    text.toString("latin1"),
    "TRACE /a?b HTTP/1.1\r\nHost: a.test\r\nVia: 1.1 edge\r\nMax-Forwards: 0\r\nX-Mine: \xe9\r\nAccept: */*\r\n\r\n",
  );
});
