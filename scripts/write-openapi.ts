import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiInfo, operations } from "@headworks/capture-contract";
import { openApiDocument } from "@headworks/contract-kit/openapi";
import { adminApiInfo, adminOperations } from "@headworks/gateway-contract";
import { repositoryRoot } from "./source-tree.ts";

/** The committed documents by path; a change of an API shows in review. */
const DOCUMENTS: readonly { readonly path: string; readonly text: () => string }[] = [
  {
    path: "packages/capture-contract/openapi.json",
    text: () => textOf(openApiDocument(operations, apiInfo)),
  },
  {
    path: "packages/gateway-contract/openapi.json",
    text: () => textOf(openApiDocument({ admin: adminOperations }, adminApiInfo)),
  },
];

export function openApiTexts(): ReadonlyMap<string, string> {
  return new Map(DOCUMENTS.map(({ path, text }) => [path, text()]));
}

function textOf(document: object): string {
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

/** The first different line of two texts, in both versions; undefined if they are equal. */
export function firstDifference(committed: string, wanted: string): string | undefined {
  const before = committed.split("\n");
  const after = wanted.split("\n");
  const longer = before.length > after.length ? before : after;
  const line = longer.findIndex((_, index) => before[index] !== after[index]);
  if (line === -1) return undefined;
  return `line ${line + 1}:\n  - ${before[line] ?? "(end of file)"}\n  + ${after[line] ?? "(end of file)"}`;
}

if (import.meta.main) {
  for (const [document, wanted] of openApiTexts()) {
    const path = join(repositoryRoot, document);
    const committed = existsSync(path) ? readFileSync(path, "utf8") : "";
    if (!process.argv.includes("--check")) {
      writeFileSync(path, wanted);
      console.log(`Wrote ${document}`);
    } else if (committed === wanted) {
      console.log(`${document} matches the contract`);
    } else {
      console.error(
        `${document} does not match the contract, first in ${firstDifference(committed, wanted) ?? "nothing"}`,
      );
      console.error("Run npm run openapi and commit the file");
      process.exitCode = 1;
    }
  }
}
