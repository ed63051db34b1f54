import { join } from "node:path";
import { runServices } from "./services.ts";
import type { Service } from "./services.ts";
import { repositoryRoot } from "./source-tree.ts";
import { ensureUi } from "./ui-build.ts";

// Tested by services.test.ts

/** What `npm start` runs side by side. Arguments after `--` go to Weir. */
function servicesToStart(args: readonly string[]): Service[] {
  return [
    {
      name: "weir",
      // As in the first line of the file.
      nodeOptions: ["--max-semi-space-size=16", "--single-threaded-gc"],
      entry: join(repositoryRoot, "apps/capture-proxy/src/main.ts"),
      args: ["serve", ...args],
    },
  ];
}

try {
  await ensureUi(repositoryRoot, (line) => console.error(line));
  process.exitCode = await runServices(servicesToStart(process.argv.slice(2)));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
