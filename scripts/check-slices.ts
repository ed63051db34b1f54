import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { DENIED_NAMES, DENIED_WORDS, SLICE_ROLES, slicedApps } from "./slice-rules.ts";
import type { SlicedApp } from "./slice-rules.ts";
import { filesBelow, reportProblems, repositoryRoot, sourceFiles } from "./source-tree.ts";
import type { Problem } from "./source-tree.ts";

const TEST = /\.test\.tsx?$/u;

/** Names and paths of files that break the rules. */
export function findSliceProblems(root: string): Problem[] {
  const files = sourceFiles(root);
  return [
    ...deniedNameProblems(files),
    ...suppressionProblems(root, files),
    ...slicedApps.flatMap((app) => slicedAppProblems(root, app)),
  ];
}

function deniedNameProblems(files: readonly string[]): Problem[] {
  const seen = new Set<string>();
  for (const file of files) {
    const parts = file.split("/");
    for (const [depth, part] of parts.entries()) {
      const name = part.replace(/\..*$/u, "").toLowerCase();
      const denied = DENIED_NAMES.includes(name) || name.split(/[-_]/u).some((word) => DENIED_WORDS.includes(word));
      if (denied) seen.add(parts.slice(0, depth + 1).join("/"));
    }
  }
  return [...seen].map((where) => ({
    where,
    message:
      "The name does not describe the content. Name the file after its noun, or move the function to its only caller",
  }));
}

/** Disabled lint rules without a reason after two dashes. */
function suppressionProblems(root: string, files: readonly string[]): Problem[] {
  const pattern = /(?:ox|es)lint-disable(?:-next-line|-line)?\b(?!.* -- \S)/u;
  return files
    .filter((file) => /\.tsx?$/u.test(file) && !file.startsWith("scripts/check-slices"))
    .flatMap((file) =>
      readFileSync(join(root, file), "utf8")
        .split("\n")
        .flatMap((line, index) => {
          const message = "Says no reason for switching a rule off; add it after ' -- '";
          return pattern.test(line) ? [{ where: `${file}:${index + 1}`, message }] : [];
        }),
    );
}

function slicedAppProblems(root: string, app: SlicedApp): Problem[] {
  const files = filesBelow(root, app.slices);
  const slices = [...new Set(files.map((file) => file.slice(app.slices.length + 1).split("/")[0] ?? ""))];
  return [
    ...files.flatMap((file) => sliceFileProblems(app, file)),
    ...slices.flatMap((slice) => sliceProblems(root, app, slice, files)),
    ...contractProblems(root, app, slices),
    ...viewProblems(root, app, slices),
  ];
}

function sliceFileProblems(app: SlicedApp, file: string): Problem[] {
  const [slice = "", ...rest] = file.slice(app.slices.length + 1).split("/");
  const name = rest.join("/");
  if (name === "") return [{ where: file, message: "Only folders belong here, one for each slice" }];
  if (rest.length > 1) {
    return [{ where: file, message: "A slice is one flat folder; a slice that needs two is two slices" }];
  }
  if (!name.endsWith(".ts")) return [];
  const roles = name.replace(TEST, "").replace(/\.ts$/u, "").split(".");
  if (roles.length === 1 && roles[0] !== slice) return [];
  if (roles.length === 1) {
    return [
      {
        where: file,
        message: `Give it a role (${slice}.<role>.ts) or the name of its noun. Roles: ${SLICE_ROLES.join(", ")}`,
      },
    ];
  }
  const [owner, role = ""] = roles;
  // A test may add one word of its own: `mocks.store.recovery.test.ts`.
  const longest = TEST.test(name) ? 3 : 2;
  if (owner !== slice && TEST.test(name) && roles.length === 2) return [];
  if (owner === slice && SLICE_ROLES.includes(role) && roles.length <= longest) return [];
  return [
    {
      where: file,
      message: `A file of this slice is ${slice}.<role>.ts with one of the roles ${SLICE_ROLES.join(", ")}, or noun.ts`,
    },
  ];
}

function sliceProblems(root: string, app: SlicedApp, slice: string, files: readonly string[]): Problem[] {
  const problems: Problem[] = [];
  const where = `${app.slices}/${slice}`;
  if (!files.includes(`${where}/${slice}.slice.ts`)) {
    problems.push({ where, message: `Has no ${slice}.slice.ts, the file that builds the slice from its host` });
  }
  if (!existsSync(join(root, app.contract, `${slice}.ts`))) {
    problems.push({
      where,
      message: `Has no contract ${app.contract}/${slice}.ts; slice and contract have the same name`,
    });
  }
  const list = join(root, app.list);
  if (existsSync(list) && !readFileSync(list, "utf8").includes(`slices/${slice}/${slice}.slice.ts`)) {
    problems.push({ where, message: `Is missing in ${app.list}` });
  }
  return problems;
}

/** A contract file with an operations table names a slice, and its paths begin with that name. */
function contractProblems(root: string, app: SlicedApp, slices: readonly string[]): Problem[] {
  return filesBelow(root, app.contract).flatMap((file) => {
    const source = readFileSync(join(root, file), "utf8");
    if (TEST.test(file) || !/export const \w+Operations\b/u.test(source)) return [];
    const slice = posix.basename(file, ".ts");
    const problems: Problem[] = [];
    if (!slices.includes(slice)) {
      problems.push({ where: file, message: `Has operations but no slice ${app.slices}/${slice}` });
    }
    const table = `${slice.replace(/-(\w)/gu, (_, letter: string) => letter.toUpperCase())}Operations`;
    if (!source.includes(`export const ${table}`)) {
      problems.push({ where: file, message: `Its table must be named ${table}` });
    }
    for (const [, path = "", first = ""] of source.matchAll(/\bpath: "(\/([^/"]*)[^"]*)"/gu)) {
      if (![first, app.aliases[first], app.pathsElsewhere[path]].includes(slice)) {
        problems.push({
          where: file,
          message: `Has a path below /${first}; operations of ${slice} are below /${slice}`,
        });
      }
    }
    return problems;
  });
}

function viewProblems(root: string, app: SlicedApp, slices: readonly string[]): Problem[] {
  const views = new Set(
    filesBelow(root, app.views).map((file) =>
      (file.slice(app.views.length + 1).split("/")[0] ?? "").replace(/\..*$/u, ""),
    ),
  );
  return [...views]
    .filter((view) => !slices.includes(view) && !(view in app.viewsWithoutSlice))
    .map((view) => ({
      where: `${app.views}/${view}`,
      message: `No slice is called ${view}; a view has its slice's name, or a reason in scripts/slice-rules.ts`,
    }));
}

if (import.meta.main) {
  reportProblems(findSliceProblems(repositoryRoot), "Names and places are as agreed");
}
