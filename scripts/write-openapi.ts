import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiInfo, operations } from "@headworks/capture-contract";
import { openApiDocument } from "@headworks/contract-kit/openapi";
import { repositoryRoot } from "./source-tree.ts";

/** The committed document, so that a change of the API shows in review. */
const PATH = "packages/capture-contract/openapi.json";

const wanted = `${JSON.stringify(openApiDocument(operations, apiInfo), undefined, 2)}\n`;
if (process.argv.includes("--check")) {
  const committed = readIfThere(join(repositoryRoot, PATH));
  if (committed === wanted) console.log(`${PATH} matches the contract`);
  else {
    console.error(
      `${PATH} does not match the contract${firstDifference(committed, wanted)}\nRun npm run openapi and commit the file`,
    );
    process.exitCode = 1;
  }
} else {
  writeFileSync(join(repositoryRoot, PATH), wanted);
  console.log(`Wrote ${PATH}`);
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function firstDifference(committed: string, fresh: string): string {
  const [before, after] = [committed.split("\n"), fresh.split("\n")];
  const line = after.findIndex((text, index) => text !== before[index]);
  return line === -1
    ? ""
    : `; first difference in line ${line + 1}:\n  - ${before[line] ?? "(nothing)"}\n  + ${after[line] ?? "(nothing)"}`;
}
