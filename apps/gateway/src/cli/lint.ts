import { isError, isNotChecked, type CheckParts } from "#config/check-document.ts";
import { toJson } from "#config/write-document.ts";
import { complain, issuesOf, openDocument, warn, type Streams } from "./document-file.ts";
import { EXIT } from "./invocation.ts";

export interface LintOptions {
  readonly json?: boolean;
}

/**
 * `sluice lint FILE`: reports valid but probably unintended settings, such as unused upstreams. Resolves to 0 without
 * warnings, 2 with warnings, 1 for a configuration with errors.
 */
export async function lint(name: string, options: LintOptions, streams: Streams, parts: CheckParts): Promise<number> {
  const file = await openDocument(name, streams);
  if (file === undefined) return EXIT.failure;
  const issues = issuesOf(file, parts);
  const hasErrors = issues.some(isError);
  const count = issues.filter((issue) => !isNotChecked(issue)).length;
  const code = hasErrors ? EXIT.failure : count > 0 ? EXIT.warnings : EXIT.ok;
  if (options.json === true) {
    streams.stdout.write(`${toJson({ ok: code === EXIT.ok, issues })}\n`);
    return code;
  }
  if (hasErrors) complain(name, issues, streams);
  else {
    warn(name, issues, streams);
    if (count > 0) streams.stderr.write(`${count} ${count === 1 ? "warning" : "warnings"}\n`);
  }
  return code;
}
