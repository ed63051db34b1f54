import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DENIED_NAMES } from "./slice-rules.ts";
import { addToContractEntry, sliceFiles, sliceNames } from "./slice-templates.ts";
import { repositoryRoot } from "./source-tree.ts";

const CONTRACT_ENTRY = "packages/capture-contract/src/index.ts";

/** The files written, or the reason for none. */
export type Scaffold =
  | { readonly kind: "written"; readonly files: readonly string[]; readonly left: readonly string[] }
  | { readonly kind: "refused"; readonly reason: string };

/**
 * Writes a slice's contract, builder and handlers with their tests, and adds the contract to the contract package's entry.
 * Overwrites nothing: if any file exists, nothing is written.
 */
export function writeSlice(root: string, slice: string, noun?: string): Scaffold {
  const names = sliceNames(slice, noun);
  if (typeof names === "string") return { kind: "refused", reason: names };
  if (DENIED_NAMES.includes(slice)) return { kind: "refused", reason: `"${slice}" does not say what the slice does` };
  const files = sliceFiles(names);
  const existing = Object.keys(files).find((path) => existsSync(join(root, path)));
  if (existing !== undefined) return { kind: "refused", reason: `${existing} exists already` };
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  const entry = addToContractEntry(readFileSync(join(root, CONTRACT_ENTRY), "utf8"), names);
  if (entry !== undefined) writeFileSync(join(root, CONTRACT_ENTRY), entry);
  const left = [
    ...(entry === undefined ? [`add ${names.camel}Operations to ${CONTRACT_ENTRY}`] : []),
    `describe ${names.entity} and the operations in packages/capture-contract/src/${slice}.ts`,
    `add create${names.pascal}Slice to apps/capture-proxy/src/slices.ts`,
    "npm run openapi",
    'CONTRIBUTING.md, "Add a slice", has the steps after these',
  ];
  return { kind: "written", files: [...Object.keys(files), ...(entry === undefined ? [] : [CONTRACT_ENTRY])], left };
}

if (import.meta.main) {
  const [slice, noun] = process.argv.slice(2);
  const result = slice === undefined ? undefined : writeSlice(repositoryRoot, slice, noun);
  if (result?.kind === "written") {
    spawnSync(join(repositoryRoot, "node_modules/.bin/oxfmt"), [...result.files], { cwd: repositoryRoot });
    console.log(`Wrote\n${result.files.map((file) => `  ${file}`).join("\n")}`);
    console.log(`Left to do\n${result.left.map((step) => `  ${step}`).join("\n")}`);
  } else {
    console.error(result?.reason ?? "Usage: npm run new-slice -- <slice> [<noun>], for example: mocks mock-rule");
    process.exitCode = 1;
  }
}
