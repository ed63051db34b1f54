import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { repositoryRoot } from "./source-tree.ts";

interface Check {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** Reason to skip the check. */
  readonly skip?: string | undefined;
}

interface Outcome {
  readonly check: Check;
  readonly passed: boolean;
  readonly output: string;
}

/** The compiler and the linter use every core by themselves, so more checks at a time gain nothing. */
const AT_ONCE = 2;

const script = (name: string, ...args: string[]): [string, ...string[]] => {
  return ["node", "--disable-warning=ExperimentalWarning", `scripts/${name}.ts`, ...args];
};

const noUi = existsSync(join(repositoryRoot, "apps/capture-ui/src")) ? undefined : "no UI yet";

/** Slowest first. */
const checks: readonly Check[] = [
  { name: "types", command: ["tsc", "-p", "tsconfig.json"] },
  { name: "types of the UI", command: ["tsc", "-p", "apps/capture-ui/tsconfig.json"], skip: noUi },
  { name: "lint", command: ["oxlint"] },
  { name: "dead code", command: ["knip", "--no-progress", "--no-config-hints"] },
  { name: "format", command: ["oxfmt", "--check"] },
  { name: "imports", command: script("check-imports") },
  { name: "slices", command: script("check-slices") },
  { name: "words", command: script("check-words") },
  { name: "OpenAPI", command: script("write-openapi", "--check") },
  { name: "reference", command: script("write-config-reference", "--check") },
];

const startedMs = performance.now();
const waiting = [...checks];
const outcomes: Outcome[] = [];
await Promise.all(Array.from({ length: AT_ONCE }, work));
const failed = outcomes.filter((outcome) => !outcome.passed);
for (const { check, output } of failed) console.log(`\n── ${check.name} ──\n${output.trimEnd()}`);
const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
console.log(`\n${outcomes.length - failed.length} checks passed, ${failed.length} failed, in ${seconds} s`);
process.exitCode = failed.length === 0 ? 0 : 1;

async function work(): Promise<void> {
  for (let check = waiting.shift(); check !== undefined; check = waiting.shift()) {
    if (check.skip === undefined) outcomes.push(await run(check));
    else console.log(`skip  ${check.name.padEnd(16)} ${check.skip}`);
  }
}

/** Runs one check and prints its line. A command that cannot be started counts as failed. */
function run(check: Check): Promise<Outcome> {
  const [command, ...args] = check.command;
  const path = [join(repositoryRoot, "node_modules/.bin"), process.env["PATH"] ?? ""].join(delimiter);
  const child = spawn(command, args, {
    cwd: repositoryRoot,
    env: { ...process.env, PATH: path, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const beganMs = performance.now();
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  }
  return new Promise((resolve) => {
    const finish = (passed: boolean): void => {
      const seconds = ((performance.now() - beganMs) / 1000).toFixed(1);
      console.log(`${passed ? "ok   " : "FAIL "} ${check.name.padEnd(16)} ${seconds.padStart(5)} s`);
      resolve({ check, passed, output });
    };
    child.once("error", (error) => {
      output += error.message;
      finish(false);
    });
    child.once("close", (code) => finish(code === 0));
  });
}
