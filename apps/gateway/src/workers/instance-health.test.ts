import assert from "node:assert/strict";
import { test } from "node:test";
import { InstanceHealth } from "./instance-health.ts";
import type { WorkerEvent } from "./worker-calls.ts";

const opened: WorkerEvent = { kind: "breaker_opened", payload: { upstream: "u", detail: "error_ratio" } };
const halfOpen: WorkerEvent = { kind: "breaker_half_open", payload: { upstream: "u" } };
const closed: WorkerEvent = {
  kind: "breaker_closed",
  payload: { upstream: "u", detail: "half_open_probe_succeeded" },
};
const ejected: WorkerEvent = { kind: "endpoint_ejected", payload: { upstream: "u", endpoint: "h:1" } };
const recovered: WorkerEvent = { kind: "endpoint_recovered", payload: { upstream: "u", endpoint: "h:1" } };
const published: WorkerEvent = {
  kind: "config_published",
  payload: { generation: 1, content_hash: 1, route_count: 1 },
};

for (const [title, story, told] of [
  [
    "a breaker of one worker reports every change",
    [
      [0, opened],
      [0, halfOpen],
      [0, closed],
    ],
    ["opened", "half_open", "closed"],
  ],
  [
    "a second worker that opens reports nothing new",
    [
      [0, opened],
      [1, opened],
    ],
    ["opened"],
  ],
  [
    "it is half-open when none is open any more, and closed when all are",
    [
      [0, opened],
      [1, opened],
      [0, halfOpen],
      [0, closed],
      [1, halfOpen],
      [1, closed],
    ],
    ["opened", "half_open", "closed"],
  ],
  [
    "a probe that fails opens it again",
    [
      [0, opened],
      [0, halfOpen],
      [0, opened],
      [0, halfOpen],
      [0, closed],
    ],
    ["opened", "half_open", "opened", "half_open", "closed"],
  ],
  [
    "the end of the only worker that had it open closes it",
    [
      [0, opened],
      [0, undefined],
    ],
    ["opened", "closed"],
  ],
  [
    "the end of one of two does not",
    [
      [0, opened],
      [1, opened],
      [0, undefined],
    ],
    ["opened"],
  ],
  [
    "a breaker that a reload dropped while it was open is reported again when it opens",
    [
      [0, opened],
      [0, opened],
    ],
    ["opened", "opened"],
  ],
  [
    "an endpoint is ejected from the first worker to the last",
    [
      [0, ejected],
      [1, ejected],
      [0, recovered],
      [1, recovered],
    ],
    ["ejected", "recovered"],
  ],
  [
    "the end of the last worker that ejected it recovers it",
    [
      [0, ejected],
      [0, undefined],
    ],
    ["ejected", "recovered"],
  ],
  [
    "a recovery without an ejection reports nothing",
    [
      [0, recovered],
      [0, closed],
    ],
    [],
  ],
  [
    "an endpoint that a reload dropped while ejected is reported again when it is ejected",
    [
      [0, ejected],
      [0, ejected],
      [0, recovered],
    ],
    ["ejected", "ejected", "recovered"],
  ],
  ["configuration events of workers are not passed on", [[0, published]], []],
] as const satisfies readonly (readonly [
  string,
  readonly (readonly [number, WorkerEvent | undefined])[],
  readonly string[],
])[]) {
  test(title, () => {
    const kinds: string[] = [];
    const health = new InstanceHealth({ emit: (kind) => void kinds.push(kind.replace(/^(breaker|endpoint)_/, "")) });
    for (const [worker, event] of story) {
      if (event === undefined) health.forget(worker);
      else health.note(worker, event);
    }
    assert.deepEqual(kinds, told);
  });
}

test("an opened breaker is reported with its reason", () => {
  const payloads: unknown[] = [];
  const health = new InstanceHealth({ emit: (_kind, payload) => void payloads.push(payload) });
  health.note(3, opened);
  assert.deepEqual(payloads, [opened.payload]);
});
