import { spawn } from "node:child_process";
import { repositoryRoot, sourceFiles } from "./source-tree.ts";
import { selectTests } from "./test-selection.ts";
import { ensureUi } from "./ui-build.ts";

/** Two at once: a test process starts servers and clients of its own. */
const CONCURRENCY = 2;
/** Longer than any test takes; a test that hangs then fails by name instead of stopping the run. */
const TEST_TIMEOUT_MS = 300_000;

const { files, options, needsUi } = selectTests(sourceFiles(repositoryRoot), process.argv.slice(2));
if (files.length === 0) {
  console.error("No test file has that in its path");
  process.exit(1);
}
if (needsUi) await ensureUi(repositoryRoot, (line) => console.error(line));

const runner = spawn(
  process.execPath,
  [
    "--disable-warning=ExperimentalWarning",
    "--test",
    `--test-concurrency=${CONCURRENCY}`,
    `--test-timeout=${TEST_TIMEOUT_MS}`,
    ...(options.some((option) => option.startsWith("--test-reporter")) ? [] : ["--test-reporter=spec"]),
    ...options,
    ...files,
  ],
  { cwd: repositoryRoot, stdio: ["ignore", "inherit", "inherit"] },
);
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => runner.kill(signal));
runner.once("exit", (code) => {
  process.exitCode = code ?? 1;
});
