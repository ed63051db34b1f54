import assert from "node:assert/strict";
import { test } from "node:test";
import { verbosity } from "./log-level.ts";

const levels: readonly (readonly [Record<string, string>, string, string])[] = [
  [{}, "info", "info"],
  [{}, "debug", "debug"],
  [{ RUST_LOG: "error" }, "info", "error"],
  [{ RUST_LOG: "warn" }, "info", "warn"],
  [{ RUST_LOG: "info" }, "debug", "info"],
  [{ RUST_LOG: "debug" }, "info", "debug"],
  [{ RUST_LOG: "trace" }, "info", "trace"],
  [{ RUST_LOG: "warn", WEIR_LOG: "trace" }, "info", "trace"],
  [{ RUST_LOG: "OFF" }, "info", "silent"],
  [{ RUST_LOG: "info,weir=debug" }, "info", "debug"],
  [{ RUST_LOG: "weir=debug,info" }, "warn", "debug"],
  [{ RUST_LOG: " weir = debug , info " }, "warn", "debug"],
  [{ RUST_LOG: "weir=error,trace" }, "info", "error"],
  [{ RUST_LOG: "weir" }, "info", "trace"],
  [{ RUST_LOG: "weir::proxy=debug" }, "info", "debug"],
  [{ RUST_LOG: "weir[request{id=1}]=debug" }, "info", "debug"],
  [{ RUST_LOG: "weirdo=trace" }, "info", "info"],
  [{ RUST_LOG: "hyper=trace" }, "info", "info"],
  [{ RUST_LOG: "hyper=trace,warn" }, "debug", "warn"],
  [{ RUST_LOG: "debug/a filter,=" }, "info", "debug"],
  [{ RUST_LOG: ",,debug,," }, "info", "debug"],
  [{ WEIR_LOG: "nonsense" }, "info", "info"],
  [{ WEIR_LOG: "" }, "debug", "debug"],
  [{ WEIR_LOG: " ", RUST_LOG: "error" }, "silent", "error"],
];
for (const [environment, defaultLevel, level] of levels) {
  test(`${JSON.stringify(environment)} instead of ${defaultLevel} logs from ${level} on`, () => {
    assert.equal(verbosity(environment, defaultLevel).level, level);
  });
}

test("what says nothing is named, with its variable", () => {
  assert.deepEqual(verbosity({ RUST_LOG: "warm,weir=loud,hyper=noisy,error" }, "info"), {
    level: "error",
    unread: ["warm", "weir=loud", "hyper=noisy"],
    variable: "RUST_LOG",
  });
  assert.deepEqual(verbosity({}, "info").unread, []);
});
