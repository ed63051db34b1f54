import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "@headworks/testkit";
import { exportJWK, generateKeyPair, type JWK } from "jose";
import { pino } from "pino";
import { KeySet } from "./key-set.ts";

async function publicKey(kid: string): Promise<JWK> {
  const { publicKey: key } = await generateKeyPair("ES256");
  return { ...(await exportJWK(key)), kid };
}

/** An issuer whose fetches wait until a test answers them. */
class SlowIssuer {
  readonly waiting: PromiseWithResolvers<Buffer>[] = [];
  fetches = 0;

  readonly fetch = async (): Promise<Buffer> => {
    this.fetches += 1;
    const response = Promise.withResolvers<Buffer>();
    this.waiting.push(response);
    return await response.promise;
  };

  response(keys: readonly JWK[]): void {
    this.waiting.shift()?.resolve(Buffer.from(JSON.stringify({ keys })));
  }

  fail(): void {
    this.waiting.shift()?.reject(new Error("out of order"));
  }
}

function keySetOf(issuer: SlowIssuer, clock: FakeClock): KeySet {
  return new KeySet({
    rules: { provider: "idp", refreshMs: 300_000, retiredGraceMs: 0 },
    fetch: issuer.fetch,
    clock,
    log: pino({ level: "silent" }),
  });
}

const kidsOf = (search: Awaited<ReturnType<KeySet["find"]>>): unknown =>
  search === "unavailable" ? search : search.map(({ kid }) => kid);

test("tokens that come while keys are fetched wait for the same fetch", async () => {
  const issuer = new SlowIssuer();
  const keys = keySetOf(issuer, new FakeClock());
  const searches = Promise.all(Array.from({ length: 20 }, async () => await keys.find("a", "ES256")));
  issuer.response([await publicKey("a")]);
  assert.deepEqual(
    (await searches).map(kidsOf),
    Array.from({ length: 20 }, () => ["a"]),
  );
  assert.equal(issuer.fetches, 1);
});

test("old keys are fetched again behind the requests' backs", async () => {
  const issuer = new SlowIssuer();
  const clock = new FakeClock();
  const keys = keySetOf(issuer, clock);
  const first = keys.find("a", "ES256");
  const a = await publicKey("a");
  issuer.response([a]);
  await first;
  await clock.advance(299_999);
  await keys.find("a", "ES256");
  assert.equal(issuer.fetches, 1);
  await clock.advance(1);
  assert.deepEqual(kidsOf(await keys.find("a", "ES256")), ["a"], "at once, while the fetch is under way");
  assert.equal(issuer.fetches, 2);
  issuer.response([await publicKey("b")]);
  await clock.advance(0);
  assert.deepEqual(kidsOf(await keys.find("b", "ES256")), ["b"]);
  assert.deepEqual(kidsOf(await keys.find("a", "ES256")), [], "published no more, and there is no grace");
});

test("keys are believed for a day without their issuer, not for longer", async () => {
  const issuer = new SlowIssuer();
  const clock = new FakeClock();
  const keys = keySetOf(issuer, clock);
  const first = keys.find("a", "ES256");
  issuer.response([await publicKey("a")]);
  await first;
  await clock.advance(86_400_000);
  assert.deepEqual(kidsOf(await keys.find("a", "ES256")), ["a"]);
  issuer.fail();
  await clock.advance(5000);
  const late = keys.find("a", "ES256");
  issuer.fail();
  assert.equal(await late, "unavailable");
  await clock.advance(5000);
  const back = keys.find("a", "ES256");
  issuer.response([await publicKey("a")]);
  assert.deepEqual(kidsOf(await back), ["a"]);
});

test("an unavailable key set is indistinguishable from an unknown key id", async () => {
  const issuer = new SlowIssuer();
  const clock = new FakeClock();
  const keys = keySetOf(issuer, clock);
  const first = keys.find("a", "ES256");
  issuer.response([await publicKey("a")]);
  await first;
  await clock.advance(5000);
  const unknown = keys.find("b", "ES256");
  issuer.fail();
  assert.equal(await unknown, "unavailable");
  assert.deepEqual(kidsOf(await keys.find("a", "ES256")), ["a"], "others are not touched");
});
