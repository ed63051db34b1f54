import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import type { Timed } from "@headworks/sockets";
import { CertificateAuthority } from "@headworks/tls-authority";
import { CertificateRefusals } from "./client-tls.ts";

interface Connection {
  readonly use: () => void;
  readonly hangUp: () => void;
  readonly close: () => void;
}

/** Connections whose refusals are reported by name, on a clock that the test moves. */
function rig(): {
  readonly reported: string[];
  readonly open: (name: string, client?: string) => Connection;
  readonly pass: (ms: number) => void;
  readonly renew: () => void;
  readonly waiting: Set<Timed>;
} {
  let nowMs = 0;
  let authority = CertificateAuthority.create();
  const reported: string[] = [];
  const waiting = new Set<Timed>();
  const deadlines = {
    add: (timed: Timed) => void waiting.add(timed),
    delete: (timed: Timed) => void waiting.delete(timed),
  };
  const refusals = new CertificateRefusals(
    () => authority,
    deadlines,
    () => nowMs,
  );
  return {
    reported,
    waiting,
    open(name, client = "browser") {
      const secure = new EventEmitter();
      const inner = { hasReceived: false };
      refusals.watch(client, secure, inner, () => reported.push(name));
      return {
        use: () => void (inner.hasReceived = true),
        hangUp: () => void secure.emit("end"),
        close: () => void (secure.emit("end"), secure.emit("close")),
      };
    },
    pass(ms) {
      nowMs += ms;
      for (const timed of waiting) if (timed.deadlineMs <= nowMs) timed.onDeadline();
    },
    renew: () => void (authority = CertificateAuthority.create()),
  };
}

test("a client that disconnects at once without sending bytes counts as a refusal, reported once", () => {
  const { reported, open } = rig();
  const only = open("only");
  only.hangUp();
  only.close();
  assert.deepEqual(reported, ["only"]);
});

test("a used connection and one kept for a while are no refusals", () => {
  const { reported, open, pass } = rig();
  const used = open("used");
  used.use();
  used.close();
  const kept = open("kept");
  pass(1001);
  kept.close();
  assert.deepEqual(reported, []);
});

test("an unused connection is no refusal while the client uses another one, or when it had until then", () => {
  const { reported, open, pass } = rig();
  const [used, first, second] = [open("used"), open("first"), open("second")];
  used.use();
  pass(500);
  first.close();
  used.close();
  pass(10);
  second.close();
  assert.deepEqual(reported, []);
});

test("earlier connections of the client and those of others do not affect the decision", () => {
  const { reported, open, pass, waiting } = rig();
  const before = open("before");
  before.use();
  before.close();
  open("other", "another browser").use();
  pass(1);
  open("refused").close();
  assert.deepEqual(reported, ["refused"]);
  assert.equal(waiting.size, 0);
});

test("with another open connection, the decision waits a second for its use", () => {
  const { reported, open, pass, waiting } = rig();
  const [early, later] = [open("early"), open("later")];
  early.close();
  later.use();
  pass(1000);
  assert.deepEqual(reported, []);
  later.close();
  pass(1);
  const [one, two] = [open("one"), open("two")];
  one.close();
  two.close();
  assert.deepEqual(reported, ["two"]);
  pass(1000);
  assert.deepEqual(reported, ["two", "one"]);
  assert.equal(waiting.size, 0);
});

test("a client that trusted the former CA may refuse the new one", () => {
  const { reported, open, renew } = rig();
  open("former").use();
  renew();
  open("new").close();
  assert.deepEqual(reported, ["new"]);
});

test("among thousands of clients, the most recent ones are remembered", () => {
  const { reported, open } = rig();
  for (let client = 0; client < 2000; client += 1) open("", `client ${client}`).use();
  open("last", "client 1999").close();
  open("first", "client 0").close();
  assert.deepEqual(reported, ["first"]);
});
