import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, oldSpaceGrowthBytes } from "@headworks/testkit";
import type { ExchangeView } from "#exchange/exchange.ts";
import { TrafficObserver } from "./traffic.observer.ts";

test("finished exchanges are not promoted to the old generation", () => {
  const recorded: number[] = [];
  let lastSeq = 0;
  const store = { nextSeq: () => (lastSeq += 1), record: (seq: number) => void (recorded[0] = seq) };
  const host = { clock: new FakeClock(), events: { hasListeners: false }, store };
  const observer = new TrafficObserver(host as unknown as ConstructorParameters<typeof TrafficObserver>[0]);
  const running: ExchangeView[] = [];
  const exchanges = 200;
  let number = 0;
  const growth = oldSpaceGrowthBytes(50, () => {
    for (let count = 0; count < exchanges; count += 1) {
      number += 1;
      const exchange = { id: `exchange-${number}`, isRecorded: true, head: Array.from({ length: 250 }, () => count) };
      observer.onStarted(exchange as unknown as ExchangeView);
      running.push(exchange as unknown as ExchangeView);
      const ending = running.length > 64 ? running.shift() : undefined;
      if (ending !== undefined) observer.onFinished(ending);
    }
  });
  assert.equal(recorded[0], lastSeq - running.length);
  // An exchange of this test has over 2,000 bytes; its id and number may be kept.
  assert.ok(growth / (50 * exchanges) < 400, `${growth / (50 * exchanges)} bytes of each exchange are kept`);
});
