import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { tokenize } from "./import-scanner.ts";
import { reportProblems, repositoryRoot, sourceFiles } from "./source-tree.ts";
import type { Problem } from "./source-tree.ts";

const CODE = /\.(?:ts|tsx|js)$/u;
const CONSTANT = /^[A-Z][A-Z0-9]*_[A-Z0-9_]+$/u;
/** Names that formats and foreign interfaces prescribe. */
const PRESCRIBED = new Set(["answers", "seats_used", "seats_total"]);

interface Word {
  /** Lower case, singular. */
  readonly text: string;
  /** The glossary's word. */
  readonly instead: string;
  /** Refused only as the first word of a constant, such as in `LONGEST_NAME`. */
  readonly isPrefix: boolean;
}

/** Words in backticks in the "Not" column of a glossary's tables. */
export function deniedWords(glossary: string): Word[] {
  return glossary.split("\n").flatMap((line) => {
    const cells = line.split("|").map((cell) => cell.trim());
    const instead = cells[1] ?? "";
    const denied = cells[3] ?? "";
    const isPrefix = denied.endsWith("as a prefix of constants");
    return Array.from(denied.matchAll(/`([a-z]+)`/gu), ([, text = ""]) => ({ text, instead, isPrefix }));
  });
}

/** Identifiers and names of files that contain a word which the glossary replaces by another. */
export function findWordProblems(root: string): Problem[] {
  const words = deniedWords(readFileSync(join(root, "GLOSSARY.md"), "utf8"));
  return sourceFiles(root)
    .filter((file) => CODE.test(file))
    .flatMap((file) => {
      const source = readFileSync(join(root, file), "utf8");
      const names = tokenize(source).flatMap(({ kind, text }) => (kind === "word" ? [text] : []));
      const fileName = posix.basename(file).replace(/\..*$/u, "");
      return [...new Set([fileName, ...names])].flatMap((name) => nameProblems(file, name, words));
    });
}

function nameProblems(where: string, name: string, words: readonly Word[]): Problem[] {
  if (PRESCRIBED.has(name)) return [];
  const parts = partsOf(name);
  const found = words.find(({ text, isPrefix }) =>
    isPrefix ? CONSTANT.test(name) && parts[0] === text : parts.some((part) => part === text || part === `${text}s`),
  );
  return found === undefined ? [] : [{ where, message: `${name}: the glossary says ${found.instead}` }];
}

/** The words of a name in camel, snake or kebab case, in lower case. */
export function partsOf(name: string): string[] {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/gu, "$1 $2")
    .replaceAll(/([A-Z])([A-Z][a-z])/gu, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/u)
    .filter((part) => part !== "");
}

if (import.meta.main) {
  reportProblems(findWordProblems(repositoryRoot), "Names use the words of the glossary");
}
