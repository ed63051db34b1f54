import { type ImportMocks, MAX_MOCK_DOCUMENT_BYTES } from "@headworks/capture-contract";
import { formatBytes } from "../../ui/format.ts";

/** Bytes read to detect the format. */
export const HEAD_BYTES = 20_000;

/** Error for a document above its size limit, or undefined. */
export function sizeProblem(format: ImportMocks["format"], sizeBytes: number): string | undefined {
  const max = MAX_MOCK_DOCUMENT_BYTES[format];
  if (sizeBytes <= max) return undefined;
  const kind = { har: "HAR files", openapi: "OpenAPI documents", postman: "Postman collections", json: "exports" }[
    format
  ];
  return `The file is ${formatBytes(sizeBytes)}; ${kind} can be at most ${formatBytes(max)}`;
}

/** Guesses the format from the beginning and name of a file. */
export function guessFormat(name: string, head: string): ImportMocks["format"] {
  if (/"?(?:openapi|swagger)"?\s*:/u.test(head)) return "openapi";
  if (head.includes("getpostman.com") || /"_postman_id"/u.test(head)) return "postman";
  if (/^\s*\{\s*"log"\s*:/u.test(head) || name.toLowerCase().endsWith(".har")) return "har";
  return /^\s*\[/u.test(head) ? "json" : "har";
}
