// Also tested by ../../test/socks5-circles.test.ts
import assert from "node:assert/strict";
import { Socket } from "node:net";
import { test } from "node:test";
import type { Failure } from "#exchange/failure.ts";
import { LOOP, LoopDetector } from "./loop-detector.ts";
import type { Destination, Dialled, DialResult } from "./destination.ts";

const CROWD = 64;
const REFUSED: Failure = { stage: "proxy-handshake", side: "upstream", code: "UPSTREAM_PROXY_DENIED", message: "no" };
const LATE: Failure = { stage: "connect", side: "upstream", code: "UPSTREAM_PROXY_TIMEOUT", message: "late" };

const destinationAt = (port: number): Destination => ({
  host: "origin.test",
  port,
  secure: false,
  serverName: undefined,
});

/** A detector with a controlled clock and proxy. */
function rig() {
  const clock = { nowMs: 0 };
  const questions: { readonly destination: Destination; readonly result: DialResult }[] = [];
  const watch = new LoopDetector(
    "h0123456789abcdef",
    (destination, result) => {
      questions.push({ destination, result });
      return () => undefined;
    },
    () => clock.nowMs,
  );
  const outcomes: (Failure | "connected")[] = [];
  const result: DialResult = {
    connected: () => void outcomes.push("connected"),
    failed: (failure) => void outcomes.push(failure),
  };
  const enter = (count: number, port = 80) =>
    Array.from({ length: count }, () => watch.counted(destinationAt(port), result));
  return { clock, questions, watch, outcomes, enter };
}

test("no probe is sent before there are many concurrent connections to one destination", () => {
  const { questions, enter } = rig();
  const dials = enter(CROWD - 1);
  enter(CROWD - 1, 443);
  for (const { result } of dials) result.failed(LATE);
  for (const { left } of dials) left();
  for (let round = 0; round < 3; round += 1) for (const { left } of enter(CROWD - 1)) left();
  assert.equal(questions.length, 0, "ended connections no longer count, even if reported twice");
  enter(CROWD);
  assert.deepEqual(
    questions.map(({ destination: { host, port } }) => `${host}:${port}`),
    ["h0123456789abcdef.invalid:80"],
  );
});

test("open connections count until they are closed", () => {
  const { questions, enter, outcomes } = rig();
  const sockets = enter(CROWD - 1).map(({ result }) => {
    const socket = new Socket();
    result.connected({ socket } as Dialled);
    return socket;
  });
  assert.equal(outcomes.length, CROWD - 1);
  for (const socket of sockets) socket.emit("close");
  enter(CROWD - 1);
  assert.equal(questions.length, 0);
  enter(1);
  assert.equal(questions.length, 1);
});

test("with many connections all the time, one probe is sent per ten seconds", () => {
  const { clock, questions, enter } = rig();
  enter(CROWD * 10);
  assert.equal(questions.length, 1);
  questions[0]?.result.failed(REFUSED);
  clock.nowMs = 9999;
  enter(1);
  assert.equal(questions.length, 1);
  clock.nowMs = 10_000;
  enter(1);
  assert.equal(questions.length, 2);
});

test("a returning probe means a loop for ten seconds; refusals of the proxy meanwhile report it", () => {
  const { clock, watch, outcomes, enter } = rig();
  assert.equal(watch.recognizeProbe("h0123456789abcdef.invalid"), true, "it goes no further");
  assert.equal(watch.isLooping, false, "nothing was dialled");
  const [refused, late, later] = enter(CROWD);
  assert.equal(watch.recognizeProbe("origin.test"), false);
  assert.equal(watch.recognizeProbe("hfedcba9876543210.invalid"), false, "another process asks");
  assert.equal(watch.isLooping, false);
  assert.equal(watch.recognizeProbe("h0123456789abcdef.invalid"), true);
  assert.equal(watch.isLooping, true);
  refused?.result.failed(REFUSED);
  late?.result.failed(LATE);
  clock.nowMs = 10_000;
  assert.equal(watch.isLooping, false, "a request may find out whether it is still there");
  later?.result.failed(REFUSED);
  assert.deepEqual(outcomes, [LOOP, LATE, REFUSED]);
});
