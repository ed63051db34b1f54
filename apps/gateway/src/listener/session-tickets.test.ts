import assert from "node:assert/strict";
import { test } from "node:test";
import { waitUntil } from "@headworks/testkit";
import { SessionTickets } from "./tls-acceptor.ts";

test("ticket keys depend on context and secret only", () => {
  const tickets = new SessionTickets();
  const elsewhere = new SessionTickets(tickets.secret);
  assert.equal(tickets.keysFor("a").length, 48);
  assert.deepEqual(tickets.keysFor("a"), elsewhere.keysFor("a"));
  assert.notDeepEqual(tickets.keysFor("a"), tickets.keysFor("b"));
  assert.notDeepEqual(tickets.keysFor("a"), new SessionTickets().keysFor("a"));
});

test("subscribers are notified of each new secret until they unsubscribe, and an adopted secret equals its source", () => {
  const tickets = new SessionTickets();
  const heard: string[] = [];
  const stop = tickets.follow(() => heard.push(tickets.secret.toString("hex")));
  tickets.rotate();
  tickets.adopt(Buffer.alloc(32, 7));
  stop();
  tickets.rotate();
  assert.equal(heard.length, 2);
  assert.equal(heard[1], "07".repeat(32));
  assert.notEqual(heard[0], heard[1]);
});

test("the secret is rotated", async () => {
  const tickets = new SessionTickets();
  const first = tickets.secret;
  tickets.start(5);
  await waitUntil(() => !tickets.secret.equals(first));
  tickets.stop();
});
