import { readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join, matchesGlob, posix } from "node:path";
import { browserEntries, importZones, reservedModules } from "./import-rules.ts";
import type { Zone } from "./import-zone.ts";
import { scanModuleReferences } from "./import-scanner.ts";
import type { ModuleReference } from "./import-scanner.ts";
import { reportProblems, repositoryRoot, sourceFiles } from "./source-tree.ts";
import type { Problem } from "./source-tree.ts";
import { readWorkspaces, workspaceOf } from "./workspaces.ts";
import type { Workspace } from "./workspaces.ts";

type Target =
  | { readonly kind: "node"; readonly module: string }
  | { readonly kind: "npm"; readonly name: string }
  | { readonly kind: "ours"; readonly file: string }
  | { readonly kind: "unknown"; readonly message: string };

interface Edge {
  readonly from: string;
  readonly reference: ModuleReference;
  readonly target: Target;
}

const CODE = /\.(?:ts|tsx|mts|js|mjs)$/u;
/** Files that a bundler imports besides code. */
const ASSET = /\.(?:json|css|svg|png|woff2|html|sql)(?:\?\w+)?$/u;

/** Imports that break the table or the rules for specifiers. */
export function findImportProblems(root: string): Problem[] {
  const workspaces = readWorkspaces(root);
  const files = sourceFiles(root).filter((file) => CODE.test(file));
  const problems: Problem[] = [];
  const edges: Edge[] = [];
  for (const file of files) {
    const workspace = workspaceOf(workspaces, file);
    if (zoneOf(file) === undefined) {
      problems.push({
        where: file,
        message: "The file belongs to no zone. Give its folder one in scripts/import-zones-*.ts",
      });
    }
    problems.push(...indexFileProblems(file, workspace));
    for (const reference of scanModuleReferences(readFileSync(join(root, file), "utf8"))) {
      edges.push({ from: file, reference, target: resolve(reference.specifier, file, workspace, workspaces) });
    }
  }
  for (const edge of edges) problems.push(...edgeProblems(edge, workspaces));
  return [...problems, ...browserProblems(edges), ...cycleProblems(edges)];
}

function zoneOf(file: string): Zone | undefined {
  return importZones.find((zone) => zone.files.some((glob) => matchesGlob(file, glob)));
}

function resolve(specifier: string, from: string, workspace: Workspace | undefined, all: readonly Workspace[]): Target {
  if (specifier.startsWith("node:") || isBuiltin(specifier)) {
    return { kind: "node", module: specifier.replace(/^node:/u, "").replace(/\/.*$/u, "") };
  }
  if (specifier.startsWith(".")) {
    return { kind: "ours", file: posix.join(posix.dirname(from), specifier.replace(/\?\w+$/u, "")) };
  }
  if (specifier.startsWith("#")) {
    return { kind: "ours", file: posix.join(workspace?.folder ?? "", "src", specifier.slice(1)) };
  }
  const [first = "", second = ""] = specifier.split("/");
  const name = first.startsWith("@") ? `${first}/${second}` : first;
  const owner = all.find((candidate) => candidate.name === name);
  if (owner === undefined) return { kind: "npm", name };
  const file = owner.entries.get(`.${specifier.slice(name.length)}`);
  return file === undefined
    ? {
        kind: "unknown",
        message: `${name} has no such entry; its package.json has: ${[...owner.entries.keys()].join(" ")}`,
      }
    : { kind: "ours", file };
}

function edgeProblems(edge: Edge, workspaces: readonly Workspace[]): Problem[] {
  const { from, reference, target } = edge;
  const where = `${from}:${reference.line}`;
  const verb = reference.kind === "reexport" ? "re-exports from" : "imports";
  const problem = (message: string): Problem => ({ where, message: `${verb} "${reference.specifier}": ${message}` });
  const messages = [
    specifierMessage(edge, workspaces),
    target.kind === "unknown" ? target.message : undefined,
    reservedMessage(edge),
    zoneMessage(edge),
  ];
  return messages.filter((message) => message !== undefined).map(problem);
}

/** The rules for the spelling of a specifier, in every zone. */
function specifierMessage({ from, reference, target }: Edge, workspaces: readonly Workspace[]): string | undefined {
  const { specifier } = reference;
  if (target.kind === "node" && !specifier.startsWith("node:")) return `write "node:${specifier}"`;
  if (reference.kind === "reexport" && !specifier.startsWith(".") && !specifier.startsWith("#")) {
    return "a module exports its own names only; let the users import the other package themselves";
  }
  if (target.kind !== "ours" || !/^[.#]/u.test(specifier)) return undefined;
  if (!/\.(?:ts|tsx|mjs)$/u.test(specifier) && !ASSET.test(specifier)) {
    return "relative imports name the file with its ending, as Node loads it; end it in .ts";
  }
  const home = workspaceOf(workspaces, from);
  const destination = workspaceOf(workspaces, target.file);
  if (home !== destination) {
    return destination === undefined || home === undefined
      ? undefined
      : `leaves the workspace; import ${destination.name} by its package name`;
  }
  const crossesFolders = specifier.startsWith("../") && topFolder(from) !== topFolder(target.file);
  if (home?.hasHashImports === true && crossesFolders && target.file.startsWith(`${home.folder}/src/`)) {
    return `crosses folders; write "#${target.file.slice(`${home.folder}/src/`.length)}"`;
  }
  return undefined;
}

/** `apps/x/src/api` of `apps/x/src/api/bind.ts`; slices count one level deeper. */
function topFolder(file: string): string {
  const parts = file.split("/");
  return parts.slice(0, parts[3] === "slices" ? 5 : 4).join("/");
}

function reservedMessage({ from, reference, target }: Edge): string | undefined {
  const zone = zoneOf(from);
  const name = target.kind === "node" ? `node:${target.module}` : target.kind === "npm" ? target.name : undefined;
  const reserved = name === undefined ? undefined : reservedModules[name];
  if (reserved === undefined || zone === undefined || reference.typeOnly) return undefined;
  const outsideTheServices = /tests$|^(?:testkit|e2e|bench|scripts)$/u.test(zone.name);
  return outsideTheServices || reserved.zones.includes(zone.name)
    ? undefined
    : `${name} may be imported in ${reserved.zones.join(", ")} only: ${reserved.because}`;
}

function zoneMessage({ from, reference, target }: Edge): string | undefined {
  const zone = zoneOf(from);
  if (zone === undefined) return undefined;
  const refuse = (what: string): string => `${zone.name} may not import ${what}. ${zone.instead}`;
  switch (target.kind) {
    case "node":
      return nodeAllowed(zone, target.module) ? undefined : refuse(`node:${target.module}`);
    case "npm":
      return npmAllowed(zone, target.name) ? undefined : refuse(`the package ${target.name}`);
    case "ours":
      return oursMessage(zone, from, target.file, reference.typeOnly, refuse);
    case "unknown":
      return undefined;
  }
}

function oursMessage(
  zone: Zone,
  from: string,
  file: string,
  typeOnly: boolean,
  refuse: (what: string) => string,
): string | undefined {
  const destination = zoneOf(file);
  if (destination === undefined || ASSET.test(file)) return undefined;
  if (destination === zone) {
    if (zone.islands !== true || topFolder(from) === topFolder(file)) return undefined;
    return refuse(`${topFolder(file)} from ${topFolder(from)}`);
  }
  const valuesAllowed = matchesName(zone.ours, destination.name);
  const typesAllowed = valuesAllowed || matchesName(zone.typesOf ?? [], destination.name);
  if (!typesAllowed) return refuse(destination.name);
  if (!valuesAllowed && !typeOnly) {
    return `${zone.name} may use types of ${destination.name} only: write "import type". ${zone.instead}`;
  }
  const isDoor = destination.doors === undefined || destination.doors.some((glob) => matchesGlob(file, glob));
  // Tests of the same app may import every file.
  if (isDoor || zone.name.endsWith("tests")) return undefined;
  return `of ${destination.name} only ${destination.doors?.join(" ") ?? ""} may be imported from outside`;
}

function nodeAllowed({ node }: Zone, module: string): boolean {
  if (node === "all") return true;
  return "allBut" in node ? !node.allBut.includes(module) : node.includes(module);
}

function npmAllowed({ npm }: Zone, name: string): boolean {
  return npm === "all" || matchesName(npm, name);
}

function matchesName(names: readonly string[], name: string): boolean {
  return names.some((entry) => (entry.endsWith("*") ? name.startsWith(entry.slice(0, -1)) : entry === name));
}

function indexFileProblems(file: string, workspace: Workspace | undefined): Problem[] {
  if (!/\/src\/(?:.*\/)?index\.tsx?$/u.test(file)) return [];
  if (workspace !== undefined && [...workspace.entries.values()].includes(file)) return [];
  return [{ where: file, message: "index.ts is for a package's public entry only. Name the file after its content" }];
}

/** Node modules that a browser would load from the entries through value imports. */
function browserProblems(edges: readonly Edge[]): Problem[] {
  const problems: Problem[] = [];
  const outgoing = Map.groupBy(edges, (edge) => edge.from);
  for (const entry of browserEntries) {
    const trail = new Map<string, string>([[entry, entry]]);
    for (const [file, path] of trail) {
      for (const { reference, target } of outgoing.get(file) ?? []) {
        if (reference.typeOnly) continue;
        if (target.kind === "ours" && !trail.has(target.file)) trail.set(target.file, `${path} > ${target.file}`);
        if (target.kind === "node") {
          const message = `imports node:${target.module}, but browsers load this file: ${path}. Move the import behind an entry of its own`;
          problems.push({ where: `${file}:${reference.line}`, message });
        }
      }
    }
  }
  return problems;
}

/** Cycles of static imports, those of types included; each is reported once, at its first file. */
function cycleProblems(edges: readonly Edge[]): Problem[] {
  const outgoing = new Map<string, string[]>();
  for (const { from, reference, target } of edges) {
    if (target.kind !== "ours" || reference.kind === "dynamic") continue;
    outgoing.set(from, [...(outgoing.get(from) ?? []), target.file]);
  }
  const finished = new Set<string>();
  const path: string[] = [];
  const problems: Problem[] = [];
  const visit = (file: string): void => {
    if (finished.has(file)) return;
    const start = path.indexOf(file);
    if (start !== -1) {
      const cycle = [...path.slice(start), file].join(" > ");
      problems.push({
        where: file,
        message: `is part of an import cycle: ${cycle}. Move the shared part to a file of its own`,
      });
      return;
    }
    path.push(file);
    for (const next of outgoing.get(file) ?? []) visit(next);
    path.pop();
    finished.add(file);
  };
  for (const file of [...outgoing.keys()].toSorted()) visit(file);
  return problems;
}

if (import.meta.main) {
  reportProblems(findImportProblems(repositoryRoot), "Every import is in the table");
}
