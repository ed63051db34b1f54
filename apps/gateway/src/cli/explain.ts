import type { ConfigDocument } from "@headworks/gateway-contract";
import { isError, type CheckParts } from "#config/check-document.ts";
import { toJson } from "#config/write-document.ts";
import { printErrors, issuesOf, openDocument, printUnchecked, type Streams } from "./documents.ts";
import { configFileOf, EXIT } from "./invocation.ts";

export interface ExplainOptions {
  readonly config?: string;
  readonly method?: string;
  /** Path with optional query. */
  readonly path: string;
  readonly host?: string;
  readonly listener?: string;
  readonly scheme?: "http" | "https";
  /** `Name: value` each. */
  readonly header?: readonly string[];
  readonly json?: boolean;
}

interface AskedRequest {
  readonly method: string;
  readonly target: string;
  readonly host?: string;
  readonly listener?: string;
  readonly scheme?: "http" | "https";
  readonly headers: Readonly<Record<string, readonly string[]>>;
}

/** The part of routing's explanation that is printed. */
interface Explanation {
  readonly decision: string;
  readonly reason: string;
  readonly route: string | null;
  readonly gate: { readonly status: number; readonly code: string; readonly reason: string } | null;
  readonly parameters: Readonly<Record<string, string>> | null;
  readonly upstream_target: string | null;
  readonly routes: readonly {
    readonly route: string;
    readonly path: "wins" | "loses" | "no_match";
    readonly reason: string;
    readonly criteria: readonly {
      readonly kind: string;
      readonly name?: string;
      readonly expected: string;
      readonly found: string | null;
      readonly matches: boolean;
    }[];
  }[];
}

export type Explain = (document: ConfigDocument, request: AskedRequest) => Explanation;

/**
 * `sluice explain --path /v1/users`: shows which route matches a request, and why others do not. Resolves to 0 for any
 * result, to 1 for a configuration with errors.
 */
export async function explain(
  options: ExplainOptions,
  streams: Streams,
  parts: CheckParts,
  explainRoute: Explain,
): Promise<number> {
  const name = configFileOf(options.config, parts.environment);
  const headers = headersOf(options.header ?? []);
  if (typeof headers === "string") {
    streams.stderr.write(`sluice: ${headers}\n`);
    return EXIT.warnings;
  }
  const file = await openDocument(name, streams);
  const document = file?.reading.document;
  if (file === undefined || document === undefined) {
    if (file !== undefined) printErrors(name, file.reading.issues, streams);
    return EXIT.failure;
  }
  // Secrets missing on this machine do not affect routing.
  const issues = issuesOf(file, parts).filter(({ code }) => code !== "secret_unresolved");
  if (issues.some(isError)) {
    printErrors(name, issues, streams);
    return EXIT.failure;
  }
  printUnchecked(name, issues, streams);
  const { method = "GET", path, host, listener, scheme } = options;
  const request = {
    method,
    target: path,
    headers,
    ...(host === undefined ? {} : { host }),
    ...(listener === undefined ? {} : { listener }),
    ...(scheme === undefined ? {} : { scheme }),
  };
  const explanation = explainRoute(document, request);
  streams.stdout.write(options.json === true ? `${toJson(explanation)}\n` : explanationText(request, explanation));
  return EXIT.ok;
}

/** Values by name, in order; or a message about the first malformed header. */
function headersOf(lines: readonly string[]): Record<string, string[]> | string {
  const headers = Object.create(null) as Record<string, string[]>;
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon < 1) return `--header takes "Name: value", not ${JSON.stringify(line)}`;
    (headers[line.slice(0, colon).trim().toLowerCase()] ??= []).push(line.slice(colon + 1));
  }
  return headers;
}

function explanationText({ method, target }: AskedRequest, explanation: Explanation): string {
  const { gate } = explanation;
  const lines = [`${method} ${target}`, `${explanation.decision}: ${explanation.reason}`];
  if (explanation.route !== null) lines.push(`route: ${explanation.route}`);
  if (gate !== null) lines.push(`${gate.status} ${gate.code}: ${gate.reason}`);
  for (const [name, value] of Object.entries(explanation.parameters ?? {})) lines.push(`parameter ${name}: ${value}`);
  if (explanation.upstream_target !== null) lines.push(`upstream target: ${explanation.upstream_target}`);
  for (const verdict of explanation.routes) {
    if (verdict.criteria.length === 0 && verdict.path === "no_match") continue;
    lines.push("", `${verdict.route} ${verdict.path}: ${verdict.reason}`);
    for (const { kind, name, expected, found, matches } of verdict.criteria) {
      const title = name === undefined ? kind : `${kind} ${name}`;
      const actual = found === null ? "found none" : `found ${JSON.stringify(found)}`;
      lines.push(`  ${matches ? "match   " : "mismatch"} ${title}: expected ${expected}, ${actual}`);
    }
  }
  return `${lines.join("\n")}\n`;
}
