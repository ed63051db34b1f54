import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { signatureFields, signingKey } from "./webhooks.slice.ts";

test("the signature is the one of the Standard Webhooks specification's own example", () => {
  const key = signingKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  assert.ok(key);
  const fields = signatureFields(
    key,
    "msg_p5jXN8AQM9LWM0D4loKWxJek",
    Buffer.from('{"test": 2432232314}'),
    1614265330_000,
  );
  assert.deepEqual(fields, [
    "webhook-id",
    "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp",
    "1614265330",
    "webhook-signature",
    "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  ]);
});

test("the bytes of the body are signed, not a reading of them", () => {
  const key = Buffer.alloc(32, 7);
  const body = Buffer.from([0xff, 0x00, 0xc3, 0xbc]);
  const signed = Buffer.concat([Buffer.from("id.1."), body]);
  const expected = createHmac("sha256", key).update(signed).digest("base64");
  assert.equal(signatureFields(key, "id", body, 1999).at(-1), `v1,${expected}`);
});

const base64 = (sizeBytes: number): string => Buffer.alloc(sizeBytes, 0xab).toString("base64");
const secrets: [what: string, secret: string, sizeBytes: number | undefined][] = [
  ["24 bytes with the prefix", `whsec_${base64(24)}`, 24],
  ["24 bytes without the prefix", base64(24), 24],
  ["64 bytes", base64(64), 64],
  ["without padding", base64(25).replace(/=+$/, ""), 25],
  ["23 bytes", base64(23), undefined],
  ["65 bytes", base64(65), undefined],
  ["plain text", "correct horse battery staple!", undefined],
  ["base64 of URLs", `${base64(24).slice(0, -2)}-_`, undefined],
  ["a length base64 cannot have", `${base64(24)}A`, undefined],
  ["the prefix alone", "whsec_", undefined],
  ["nothing", "", undefined],
];
for (const [what, secret, sizeBytes] of secrets) {
  test(`a secret of ${what} is ${sizeBytes === undefined ? "refused" : "a key"}`, () => {
    assert.equal(signingKey(secret)?.length, sizeBytes);
  });
}
