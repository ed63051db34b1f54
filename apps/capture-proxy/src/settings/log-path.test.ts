import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { resolveLogPath } from "./log-path.ts";
import { StartupError } from "./startup-error.ts";

const dataDir = join(tmpdir(), "no-such-weir");
const own = join(dataDir, "logs", "weir.log");

for (const [what, flag, environment, expected] of [
  ["nothing", undefined, {}, own],
  ["an empty variable", undefined, { WEIR_LOG_PATH: "" }, own],
  ["a variable", undefined, { WEIR_LOG_PATH: "/a/x.log" }, resolve("/a/x.log")],
  ["the variable of the specification", undefined, { SERVICE_LOG_PATH: "/b/x.log" }, resolve("/b/x.log")],
  ["both", undefined, { WEIR_LOG_PATH: "/a", SERVICE_LOG_PATH: "/b" }, resolve("/a")],
  ["a flag, which wins", "x.log", { WEIR_LOG_PATH: "/a" }, resolve("x.log")],
] as const) {
  test(`with ${what} said, the log goes to ${expected}`, () => {
    assert.equal(resolveLogPath({ flag, environment, dataDir }), expected);
  });
}

test("what can be no file stops the start, with the name of what says it", () => {
  for (const flag of ["", "logs/", tmpdir()]) {
    const refused = (error: unknown): boolean =>
      error instanceof StartupError && error.message.startsWith("--log-path ");
    assert.throws(() => resolveLogPath({ flag, environment: {}, dataDir }), refused, JSON.stringify(flag));
  }
  const environment = { WEIR_LOG_PATH: tmpdir() };
  assert.throws(() => resolveLogPath({ flag: undefined, environment, dataDir }), /^StartupError: WEIR_LOG_PATH /);
});
