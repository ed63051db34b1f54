import { type ImportMocks, MAX_MOCK_DOCUMENT_BYTES } from "@headworks/capture-contract";
import { formatBytes } from "../../ui/format.ts";

/** So much of a file is looked at to see what it is. */
export const HEAD_BYTES = 20_000;

/** Why a document of this size is not taken in; undefined when it is. */
export function sizeProblem(format: ImportMocks["format"], sizeBytes: number): string | undefined {
  const most = MAX_MOCK_DOCUMENT_BYTES[format];
  if (sizeBytes <= most) return undefined;
  const kind = { har: "HAR files", openapi: "OpenAPI documents", postman: "Postman collections", json: "exports" }[
    format
  ];
  return `The file is ${formatBytes(sizeBytes)}; ${kind} can be at most ${formatBytes(most)}`;
}

/** Guesses what kind of document a file is by its beginning and its name. */
export function guessFormat(name: string, head: string): ImportMocks["format"] {
  if (/"?(?:openapi|swagger)"?\s*:/u.test(head)) return "openapi";
  if (head.includes("getpostman.com") || /"_postman_id"/u.test(head)) return "postman";
  if (/^\s*\{\s*"log"\s*:/u.test(head) || name.toLowerCase().endsWith(".har")) return "har";
  return /^\s*\[/u.test(head) ? "json" : "har";
}
