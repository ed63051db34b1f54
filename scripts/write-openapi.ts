import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiInfo, operations } from "@headworks/capture-contract";
import { openApiDocument } from "@headworks/contract-kit/openapi";
import { repositoryRoot } from "./source-tree.ts";

/** The committed document, so that a change of the API shows in review. */
const DOCUMENT = "packages/capture-contract/openapi.json";

/** The document that the contract describes, as it is written to disk. */
export function openApiText(): string {
  return `${JSON.stringify(openApiDocument(operations, apiInfo), undefined, 2)}\n`;
}

/** The first line in which two texts differ, with both versions of it; nothing if they are equal. */
export function firstDifference(committed: string, wanted: string): string | undefined {
  const before = committed.split("\n");
  const after = wanted.split("\n");
  const longer = before.length > after.length ? before : after;
  const line = longer.findIndex((_, index) => before[index] !== after[index]);
  if (line === -1) return undefined;
  return `line ${line + 1}:\n  - ${before[line] ?? "(end of file)"}\n  + ${after[line] ?? "(end of file)"}`;
}

if (import.meta.main) {
  const path = join(repositoryRoot, DOCUMENT);
  const wanted = openApiText();
  const committed = existsSync(path) ? readFileSync(path, "utf8") : "";
  if (!process.argv.includes("--check")) {
    writeFileSync(path, wanted);
    console.log(`Wrote ${DOCUMENT}`);
  } else if (committed === wanted) {
    console.log(`${DOCUMENT} matches the contract`);
  } else {
    console.error(
      `${DOCUMENT} does not match the contract, first in ${firstDifference(committed, wanted) ?? "nothing"}`,
    );
    console.error("Run npm run openapi and commit the file");
    process.exitCode = 1;
  }
}
