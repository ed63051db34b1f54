import { randomBytes } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { makeDirectorySync } from "@headworks/files";
import { StartupError } from "./startup-error.ts";

/** The document as it stands in the file, our fields and foreign ones. */
export type ConfigDocument = Record<string, unknown>;

/** `<data_dir>/config.json` */
export function configPath(dataDir: string): string {
  return join(dataDir, "config.json");
}

/**
 * Reads the file; an absent one is an empty document. Throws {@link StartupError} naming file and position when it
 * cannot be read or is no JSON object: a file that a person edited is never overwritten or ignored.
 */
export function readConfigFile(path: string): ConfigDocument {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw new StartupError(`Cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
  let document: unknown;
  try {
    document = JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
  } catch (error) {
    throw new StartupError(`${path} is not valid JSON: ${jsonProblem(text, error as SyntaxError)}`, { cause: error });
  }
  if (typeof document !== "object" || document === null || Array.isArray(document)) {
    throw new StartupError(`${path} must hold a JSON object`);
  }
  return document as ConfigDocument;
}

/** The parser's message with line and column instead of an offset. */
function jsonProblem(text: string, error: SyntaxError): string {
  const offset = /at position (\d+)/.exec(error.message)?.[1];
  const reason = error.message.replace(/ (?:in JSON )?at position \d+.*$/s, "");
  if (offset === undefined) return text.trim() === "" ? "the file is empty" : reason;
  const before = text.slice(0, Number(offset)).split("\n");
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}: ${reason}`;
}

/**
 * Replaces the file: whoever reads it, at any moment and after a power cut, finds the old or the new document whole.
 * Mode 0600, because it holds passwords. A link stays, and what it leads to is replaced.
 */
export function writeConfigFile(path: string, document: ConfigDocument): void {
  const place = placeOf(path);
  const directory = dirname(place);
  makeDirectorySync(directory);
  const temporary = `${place}.${process.pid}-${randomBytes(4).toString("hex")}.tmp`;
  try {
    const file = openSync(temporary, "wx", 0o600);
    try {
      const bytes = Buffer.from(`${JSON.stringify(document, null, 2)}\n`);
      for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, place);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  syncDirectory(directory);
}

/** Where a name leads, also where nothing is yet. */
function placeOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  try {
    return placeOf(resolve(realpathSync(dirname(path)), readlinkSync(path)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return path;
  }
}

/** Makes the rename itself durable. Windows cannot open directories and keeps renames in its journal. */
function syncDirectory(directory: string): void {
  if (process.platform === "win32") return;
  const handle = openSync(directory, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
