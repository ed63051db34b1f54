import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { repositoryRoot, sourceFiles } from "./source-tree.ts";
import { batchTests, spreadBrowsers, writeBatches } from "./test-batches.ts";
import { selectTests } from "./test-selection.ts";
import { ensureUi } from "./ui-build.ts";

/**
 * One more than the number of processors: a test waits for a fifth of its time. With two more, browsers slow each other
 * down and the run takes longer.
 */
const CONCURRENCY = Math.min(availableParallelism() + 1, 4);
/** Longer than any test takes; a test that hangs then fails by name instead of stopping the run. */
const TEST_TIMEOUT_MS = 180_000;
/**
 * The runner waits indefinitely for a process that stays alive after its tests. In CI it is stopped.
 */
const SILENCE_LIMIT_MS = TEST_TIMEOUT_MS + 60_000;

/** Hundreds of processes load the same sources: a shared compile cache saves a third of a small test's time. */
const COMPILE_CACHE = join(repositoryRoot, "node_modules/.cache/tests");

const { files, options, needsUi } = selectTests(sourceFiles(repositoryRoot), process.argv.slice(2));
if (files.length === 0) {
  console.error("No test file has that in its path");
  process.exit(1);
}
if (needsUi) await ensureUi(repositoryRoot, (line) => console.error(line));

const batches = spreadBrowsers(batchTests(files, (file) => readFileSync(join(repositoryRoot, file), "utf8")));
const batchDirectory = mkdtempSync(join(tmpdir(), "headworks-tests-"));
process.once("exit", () => rmSync(batchDirectory, { recursive: true, force: true }));
const runner = spawn(
  process.execPath,
  [
    "--disable-warning=ExperimentalWarning",
    `--import=${fileURLToPath(new URL("property-seed.ts", import.meta.url))}`,
    "--test",
    `--test-concurrency=${CONCURRENCY}`,
    `--test-timeout=${TEST_TIMEOUT_MS}`,
    ...(options.some((option) => option.startsWith("--test-reporter")) ? [] : ["--test-reporter=spec"]),
    ...options,
    ...writeBatches(repositoryRoot, batchDirectory, batches),
  ],
  {
    cwd: repositoryRoot,
    // There is no load balancer.
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE, GATEWAY_SHUTDOWN_DELAY_MS: "0", ...process.env },
    stdio: ["ignore", process.stdout.isTTY ? "inherit" : "pipe", "inherit"],
  },
);
let hangs = false;
if (runner.stdout !== null) {
  const silence = setTimeout(() => {
    hangs = true;
    console.error(`Nothing was reported for ${SILENCE_LIMIT_MS / 1000} s; what still runs is named below.`);
    runner.kill("SIGINT");
    setTimeout(() => runner.kill("SIGKILL"), 10_000).unref();
  }, SILENCE_LIMIT_MS).unref();
  runner.stdout.on("data", () => silence.refresh());
  runner.stdout.pipe(process.stdout);
}
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => runner.kill(signal));
runner.once("close", (code) => {
  process.exitCode = hangs ? 1 : (code ?? 1);
});
