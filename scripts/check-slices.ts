import { existsSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join, matchesGlob, posix } from "node:path";
import { tokenize } from "./import-scanner.ts";
import { DENIED_NAMES, DENIED_WORDS, SLICE_ROLES, slicedApps, untestedFiles } from "./slice-rules.ts";
import type { Excuse, SlicedApp } from "./slice-rules.ts";
import { filesBelow, reportProblems, repositoryRoot, sourceFiles } from "./source-tree.ts";
import type { Problem } from "./source-tree.ts";

const TEST = /\.test\.tsx?$/u;
/** Words that only appear where something is decided, repeated or called later. */
const LOGIC_WORDS = new Set(["function", "class", "if", "for", "while", "switch", "do", "try"]);

/** Holds names, places and the presence of tests against the rules. */
export function findSliceProblems(root: string, excuses = untestedFiles): Problem[] {
  const files = sourceFiles(root);
  return [
    ...deniedNameProblems(files),
    ...testProblems(root, files, excuses),
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
    message: "The name does not say what is inside. Name it for its noun, or put the function where its only caller is",
  }));
}

/** Every file with logic has a test beside it, names the test that covers it, or has an excuse that still holds. */
function testProblems(root: string, files: readonly string[], excuses: Readonly<Record<string, Excuse>>): Problem[] {
  const problems: Problem[] = [];
  const used = new Set<string>();
  for (const file of files.filter(isTestable)) {
    const stem = file.replace(/\.tsx?$/u, "");
    if (files.some((test) => TEST.test(test) && test.startsWith(`${stem}.`))) continue;
    const source = readFileSync(join(root, file), "utf8");
    if (!hasLogic(file, source)) continue;
    const excuse = Object.keys(excuses).find((glob) => matchesGlob(file, glob));
    if (excuse !== undefined) used.add(excuse);
    else problems.push(...untestedProblems(file, source, files));
  }
  return [...problems, ...rottenExcuseProblems(files, excuses, used)];
}

function isTestable(file: string): boolean {
  const holdsCode = /^(?:apps|packages)\/[^/]+\/src\//u.test(file) || file.startsWith("scripts/");
  return holdsCode && /\.tsx?$/u.test(file) && !TEST.test(file) && !file.endsWith(".d.ts");
}

/** The line `// Tested by other.test.ts` in a file counts as long as that test exists (path from the file's folder). */
function untestedProblems(file: string, source: string, files: readonly string[]): Problem[] {
  const named = /^\/\/ Tested by (\S+\.test\.ts)\b/mu.exec(source)?.[1];
  if (named === undefined) {
    const test = posix.basename(file).replace(/\.tsx?$/u, ".test.ts");
    const message = `There is logic here and no ${test} beside it. Write it, or name the test that covers it in a line "// Tested by <path>"`;
    return [{ where: file, message }];
  }
  const path = posix.join(posix.dirname(file), named);
  return files.includes(path) ? [] : [{ where: file, message: `Says it is tested by ${named}, which does not exist` }];
}

function rottenExcuseProblems(
  files: readonly string[],
  excuses: Readonly<Record<string, Excuse>>,
  used: ReadonlySet<string>,
): Problem[] {
  return Object.entries(excuses).flatMap(([glob, excuse]) => {
    // A pattern may stay while its folder is empty.
    if (!used.has(glob) && !glob.includes("*")) {
      return [{ where: glob, message: "Needs no excuse (any more); delete its line in scripts/slice-rules.ts" }];
    }
    if (!("testedBy" in excuse) || files.some((file) => matchesGlob(file, excuse.testedBy))) return [];
    return [{ where: glob, message: `Is said to be tested by ${excuse.testedBy}, which does not exist` }];
  });
}

/** Whether anything in a file runs that could be wrong; types, constants and re-exports are not logic. */
export function hasLogic(file: string, source: string): boolean {
  if (file.endsWith(".tsx")) return true;
  const code = withoutTypes(source);
  if (code === undefined) return true;
  const tokens = tokenize(code);
  return tokens.some(
    (token, index) =>
      (token.kind === "word" && LOGIC_WORDS.has(token.text)) ||
      (token.text === "=" && tokens[index + 1]?.text === ">" && tokens[index + 1]?.start === token.start + 1),
  );
}

/** Nothing for a source that does not parse; the type check says what is wrong with it. */
function withoutTypes(source: string): string | undefined {
  try {
    return stripTypeScriptTypes(source);
  } catch {
    return undefined;
  }
}

/** A switched-off rule says why, after two dashes. */
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
    return [{ where: file, message: "A slice is one flat folder; if it needs two, it is two slices" }];
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
      message: `Has no contract ${app.contract}/${slice}.ts; slice and contract carry the same name`,
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
    for (const [, first = ""] of source.matchAll(/\bpath: "\/([^/"]*)/gu)) {
      if (first !== slice && app.aliases[first] !== slice) {
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
      message: `No slice is called ${view}; a view carries its slice's name, or a reason in scripts/slice-rules.ts`,
    }));
}

if (import.meta.main) {
  reportProblems(findSliceProblems(repositoryRoot), "Names, places and tests are as agreed");
}
