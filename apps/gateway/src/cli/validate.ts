import { isError, isNotChecked, type CheckParts } from "#config/check-document.ts";
import { contentHash, hashText, toJson } from "#config/write-document.ts";
import { complain, issuesOf, openDocument, warn, type Streams } from "./document-file.ts";
import { EXIT } from "./invocation.ts";

export interface ValidateOptions {
  /** Prints one JSON object, warnings included, instead of lines. */
  readonly json?: boolean;
}

/**
 * `sluice validate FILE`: runs all checks of a start. Prints `ok: <n> routes` with warnings on standard error, or all
 * errors with their positions; resolves to the exit code.
 */
export async function validate(
  name: string,
  options: ValidateOptions,
  streams: Streams,
  parts: CheckParts,
): Promise<number> {
  const file = await openDocument(name, streams);
  if (file === undefined) return EXIT.failure;
  const issues = issuesOf(file, parts);
  const isGood = !issues.some(isError);
  const { document } = file.reading;
  const routes = document?.routes.length ?? 0;
  if (options.json === true) {
    const hash = isGood && document !== undefined ? hashText(contentHash(file.reading.input ?? {})) : null;
    streams.stdout.write(`${toJson({ ok: isGood, routes, content_hash: hash, issues })}\n`);
  } else if (isGood) {
    warn(name, issues, streams);
    const unchecked = issues.filter(isNotChecked).length;
    const rest = unchecked === 0 ? "" : `; not checked, since this machine does not have them: ${unchecked}`;
    streams.stdout.write(`ok: ${routes} routes${rest}\n`);
  } else complain(name, issues, streams);
  return isGood ? EXIT.ok : EXIT.failure;
}
