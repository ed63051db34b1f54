import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { filesBelow } from "./source-tree.ts";
import { readWorkspaces } from "./workspaces.ts";

const UI = "apps/capture-ui";
const BUILT = `${UI}/dist`;
/** The file with the fingerprint of the build's sources. */
const STAMP = `${BUILT}/.sources`;

/** The state of the built UI; `absent` if there is no UI to build. */
export type UiState = "absent" | "missing" | "stale" | "fresh";

/**
 * Compares contents: file times mean nothing in a fresh clone, a switched branch or a restored cache.
 */
export function uiState(root: string): UiState {
  if (!existsSync(join(root, UI, "src"))) return "absent";
  if (!existsSync(join(root, BUILT, "index.html"))) return "missing";
  const stamp = join(root, STAMP);
  return existsSync(stamp) && readFileSync(stamp, "utf8") === sourceFingerprint(root) ? "fresh" : "stale";
}

/** Builds the UI if it is missing or stale, after a call of `say`. Rejects with the bundler's output. */
export async function ensureUi(root: string, say: (line: string) => void, build = bundle): Promise<UiState> {
  const state = uiState(root);
  if (state === "absent") say("No web UI in this tree; starting without it");
  if (state !== "missing" && state !== "stale") return state;
  say(state === "missing" ? "Building the web UI (once) …" : "Building the web UI (its sources changed) …");
  // Computed before the build: an edit during the build leaves it stale.
  const fingerprint = sourceFingerprint(root);
  // A failed build must not look fresh.
  rmSync(join(root, STAMP), { force: true });
  await build(root);
  writeFileSync(join(root, STAMP), fingerprint);
  return "fresh";
}

/** Files of the UI and of all workspaces that it depends on, directly or not. */
function bundledFiles(root: string): string[] {
  const workspaces = readWorkspaces(root);
  const found = new Set([UI]);
  // Iteration of a set includes members added meanwhile.
  for (const folder of found) {
    const { dependencies = [] } = workspaces.find((workspace) => workspace.folder === folder) ?? {};
    for (const { name, folder: needed } of workspaces) if (dependencies.includes(name)) found.add(needed);
  }
  found.delete(UI);
  const packages = [...found].flatMap((folder) => [`${folder}/package.json`, ...filesBelow(root, `${folder}/src`)]);
  return [...filesBelow(root, UI), ...packages];
}

function sourceFingerprint(root: string): string {
  const hash = createHash("sha256");
  const sources = bundledFiles(root).filter((name) => !/\.test\.tsx?$/u.test(name));
  for (const file of [...sources, "package-lock.json"].toSorted()) {
    const path = join(root, file);
    const content = existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
    hash.update(`${file}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}

async function bundle(root: string): Promise<void> {
  const folder = join(root, UI);
  const vite = join(dirname(createRequire(join(folder, "package.json")).resolve("vite/package.json")), "bin/vite.js");
  const child = spawn(process.execPath, [vite, "build"], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  }
  const code = await new Promise<number | null>((resolve, reject) =>
    child.once("error", reject).once("close", resolve),
  );
  if (code !== 0) throw new Error(`The web UI does not build (exit code ${code ?? "none"})\n${output}`);
}
