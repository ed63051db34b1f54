import type { ImportMocks } from "@headworks/capture-contract";

/** Guesses what kind of document a file is by its beginning and its name. */
export function guessFormat(name: string, text: string): ImportMocks["format"] {
  const head = text.slice(0, 20_000);
  if (/"?(?:openapi|swagger)"?\s*:/u.test(head)) return "openapi";
  if (head.includes("getpostman.com") || /"_postman_id"/u.test(head)) return "postman";
  if (/^\s*\{\s*"log"\s*:/u.test(head) || name.toLowerCase().endsWith(".har")) return "har";
  return /^\s*\[/u.test(head) ? "json" : "har";
}
