import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** A page that holds everything it needs, with the fields it is served with. */
export interface DashboardPage {
  readonly html: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * The page that shows a running gateway. Style and script are inside and named by their hashes, so that nothing else
 * runs, whatever a name in a configuration holds.
 */
export function dashboardPage(): DashboardPage {
  const piece = (name: string): string => readFileSync(new URL(`./dashboard/${name}`, import.meta.url), "utf8");
  const style = `\n${piece("dashboard.css")}`;
  const script = `\n${piece("dashboard.js")}`;
  const html = piece("dashboard.html")
    .replace(/\s*\/\* style \*\/\s*(?=<)/, () => style)
    .replace(/\s*\/\* script \*\/\s*(?=<)/, () => script);
  return {
    html,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": [
        "default-src 'none'",
        `style-src ${hashOf(style)}`,
        `script-src ${hashOf(script)}`,
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
      ].join("; "),
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
    },
  };
}

function hashOf(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}
