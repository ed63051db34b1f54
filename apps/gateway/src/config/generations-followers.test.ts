import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import type { Issue } from "@headworks/gateway-contract";
import { temporaryDirectory } from "@headworks/testkit";
import { generationRig } from "../../test/config/generation-rig.ts";
import type { AcceptedCandidate, GenerationSubscribers } from "./generations.ts";

const documentOf = (name: string): string =>
  `routes: [{name: ${name}, match: {path: {type: prefix, value: /}}, action: {type: respond, status: 204}}]`;

function watched(prepare: (candidate: AcceptedCandidate) => readonly Issue[] = () => []) {
  const steps: string[] = [];
  const candidates: AcceptedCandidate[] = [];
  const subscribers: GenerationSubscribers = {
    prepare: async (candidate) => {
      steps.push(`prepare ${candidate.generation}`);
      candidates.push(candidate);
      return await Promise.resolve(prepare(candidate));
    },
    publish: async () => {
      await Promise.resolve();
      steps.push("publish");
    },
    discard: () => void steps.push("discard"),
  };
  return { steps, candidates, ...generationRig({ subscribers }) };
}

void test("a candidate is prepared by subscribers before publication, and published there before listeners are notified", async () => {
  const { generations, steps } = watched();
  generations.onPublished(() => void steps.push("here"));
  await generations.submit({ text: documentOf("a"), source: "startup" });
  assert.deepEqual(steps, ["prepare 1", "here", "publish"]);
});

void test("a candidate that a subscriber cannot prepare is rejected and reported once", async () => {
  const issue: Issue = { code: "compile_failed", path: "", message: "Worker 1: no", severity: "error" };
  const { generations, steps, events } = watched(({ generation }) => (generation === 2 ? [issue] : []));
  await generations.submit({ text: documentOf("a"), source: "startup" });
  const outcome = await generations.submit({ text: documentOf("b"), source: "admin" });
  assert.deepEqual(outcome, { outcome: "rejected", issues: [issue] });
  assert.equal(generations.current?.number, 1);
  assert.deepEqual(steps, ["prepare 1", "publish", "prepare 2"]);
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ["config_published", "config_rejected"],
  );
});

void test("a candidate that cannot be written is given up elsewhere; a dry run, and one with errors, never get there", async () => {
  const { generations, steps } = watched();
  const persist = async (): Promise<void> => await Promise.reject(new Error("read-only"));
  const { outcome } = await generations.submit({ text: documentOf("a"), source: "admin" }, { persist });
  assert.equal(outcome, "not_persisted");
  await generations.submit({ text: documentOf("a"), source: "admin" }, { dryRun: true });
  await generations.submit({ text: "routes: 7", source: "admin" });
  assert.deepEqual(steps, ["prepare 1", "discard"]);
});

void test("another process comes to the same generation, although files have changed since", async () => {
  await using directory = await temporaryDirectory();
  const file = directory.file("key");
  const key = `consumers: [{name: acme, credentials: [{type: api_key, key: "\${file:${file}}"}]}]`;
  await writeFile(file, "first");
  const here = watched();
  await here.generations.submit({ text: key, source: "startup" });
  const [accepted] = here.candidates;
  assert.ok(accepted !== undefined);
  assert.deepEqual([...accepted.files.keys()], [file]);
  await writeFile(file, "second");
  const there = watched();
  const { text, files } = accepted;
  await there.generations.submit({ text, files, generation: 41, source: "reload" });
  assert.equal(there.generations.current?.number, 41);
  assert.equal(there.candidates[0]?.fingerprint, accepted.fingerprint);
  assert.equal(there.generations.current.contentHash, here.generations.current?.contentHash);
  const later = watched();
  await later.generations.submit({ text, source: "reload" });
  assert.notEqual(later.candidates[0]?.fingerprint, accepted.fingerprint);
});
