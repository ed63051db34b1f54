import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathOf } from "./gate.ts";

/** How a path outside the API is answered. */
export type UiResponse =
  | { readonly kind: "file"; readonly path: string; readonly cacheControl: string }
  | { readonly kind: "missing-build" }
  | { readonly kind: "not-found" };

const DOCUMENT: UiResponse = { kind: "file", path: "index.html", cacheControl: "no-cache" };

/**
 * Decides between a file of the build and the UI's one document, which answers every route of the client. Hashed files
 * never change under their name; everything else is asked for again.
 */
export function chooseUiFile(target: string, uiDirectory: string): UiResponse {
  let path: string;
  try {
    path = decodeURIComponent(pathOf(target));
  } catch {
    return { kind: "not-found" };
  }
  if (/[\0\\]|\/\/|(?:^|\/)\.\.?(?:\/|$)/.test(path)) return { kind: "not-found" };
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (path.startsWith("/assets/")) {
    return { kind: "file", path: path.slice(1), cacheControl: "public, max-age=31536000, immutable" };
  }
  if (name.includes(".") && name !== "index.html") {
    return { kind: "file", path: path.slice(1), cacheControl: "no-cache" };
  }
  return existsSync(join(uiDirectory, "index.html")) ? DOCUMENT : { kind: "missing-build" };
}

/** Shown in place of the UI when it was not built; the API works without it. */
export const MISSING_BUILD_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Weir</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 40rem; margin: 10vh auto; padding: 0 1rem; }
code { background: color-mix(in srgb, currentColor 12%, transparent); padding: .1em .35em; border-radius: .25em; }
</style>
</head>
<body>
<h1>Weir is running, its web UI is not built</h1>
<p>Build it once in the folder of the project, then reload this page:</p>
<p><code>npm run build</code></p>
<p>Everything else works: <a href="/api/docs">the API</a>, <a href="/setup">certificate and device set-up</a>.</p>
</body>
</html>
`;
