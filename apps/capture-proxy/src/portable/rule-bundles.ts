import { BUNDLE_VERSION, type RuleBundle } from "@headworks/capture-contract";
import { ApiError, type ErrorDetail, validationError } from "#api/api-error.ts";
import type { ImportCounts, ImportMode, PortableRules, SliceHost } from "#slice.ts";
import { objectAt, pointerName } from "./import-body.ts";

/** How a bundle is taken in. */
export interface BundleImport {
  readonly mode: ImportMode;
  readonly dryRun: boolean;
  /** Where the bundle stood in the request, in front of every issue: `body/data`. */
  readonly at: string;
  /** Called after all rules were written and before they are committed; what it throws undoes them. */
  readonly beforeCommit?: () => void;
}

/** The rules of all slices as one document. */
export interface RuleBundles {
  export(): RuleBundle;
  /**
   * Takes a bundle in, all or nothing: everything is checked before anything is written, and written in one
   * transaction. Sections that the bundle does not have stay as they are. Throws 400 with every issue, up to 50.
   */
  import(bundle: unknown, request: BundleImport): Record<string, ImportCounts>;
}

const META: ReadonlySet<string> = new Set(["version", "exported_at", "versions"]);
const MAX_ISSUES = 50;

/** `parts` is called each time, because slices are created later. */
export function createRuleBundles(
  host: Pick<SliceHost, "database" | "clock" | "log">,
  parts: () => readonly PortableRules[],
): RuleBundles {
  const { database, clock, log } = host;
  return {
    export: () => {
      const rules = parts();
      return {
        version: BUNDLE_VERSION,
        exported_at: new Date(clock.now()).toISOString(),
        versions: Object.fromEntries(rules.map(({ key, schemaVersion }) => [key, schemaVersion])),
        ...Object.fromEntries(rules.map((part) => [part.key, part.exportRules()])),
      };
    },
    import: (input, { mode, dryRun, at, beforeCommit }) => {
      const sections = sectionsOf(input, at, parts());
      const counts = checkAll(sections, mode, at);
      if (dryRun) return counts;
      database.transaction(() => {
        for (const { part, data, version } of sections) {
          const outcome = part.importRules(data, { mode, dryRun: false, version });
          if ("issues" in outcome) throw issuesError(outcome.issues, `${at}/${part.key}`);
        }
        beforeCommit?.();
      });
      for (const { part } of sections) {
        try {
          part.reload();
        } catch (error) {
          // The rules are stored; that one kind cannot be put in force must not keep the others from it.
          log.error({ err: error, rules: part.key }, "imported rules could not be put in force");
        }
      }
      return counts;
    },
  };
}

interface Section {
  readonly part: PortableRules;
  readonly data: unknown;
  readonly version: number;
}

function checkAll(sections: readonly Section[], mode: ImportMode, at: string): Record<string, ImportCounts> {
  const counts: Record<string, ImportCounts> = {};
  const details: ErrorDetail[] = [];
  for (const { part, data, version } of sections) {
    const outcome = part.importRules(data, { mode, dryRun: true, version });
    if ("issues" in outcome) {
      details.push(...outcome.issues.map(({ path, message }) => ({ path: `${at}/${part.key}${path}`, message })));
    } else counts[part.key] = outcome.counts;
  }
  if (details.length > 0) throw validationError(details.slice(0, MAX_ISSUES));
  return counts;
}

function issuesError(issues: readonly ErrorDetail[], at: string): ApiError {
  return validationError(issues.map(({ path, message }) => ({ path: at + path, message })));
}

/** The sections of a bundle in the order of the slices, each with its version. */
function sectionsOf(input: unknown, at: string, parts: readonly PortableRules[]): Section[] {
  const bundle = objectAt(input, at);
  checkVersion(bundle["version"], BUNDLE_VERSION, `${at}/version`, "the bundle");
  const versions = bundle["versions"] === undefined ? {} : objectAt(bundle["versions"], `${at}/versions`);
  const details: ErrorDetail[] = [];
  for (const name of Object.keys(bundle)) {
    if (META.has(name) || parts.some(({ key }) => key === name)) continue;
    details.push({ path: `${at}/${pointerName(name)}`, message: "is no kind of rules that is known here" });
  }
  for (const name of Object.keys(versions)) {
    if (parts.some(({ key }) => key === name)) continue;
    details.push({ path: `${at}/versions/${pointerName(name)}`, message: "is no kind of rules that is known here" });
  }
  const exportedAt = bundle["exported_at"];
  if (exportedAt !== undefined && (typeof exportedAt !== "string" || Number.isNaN(Date.parse(exportedAt)))) {
    details.push({ path: `${at}/exported_at`, message: "must be a time" });
  }
  if (details.length > 0) throw validationError(details.slice(0, MAX_ISSUES));
  return parts.flatMap((part) => {
    if (!Object.hasOwn(bundle, part.key)) return [];
    const version = Object.hasOwn(versions, part.key) ? versions[part.key] : 1;
    checkVersion(version, part.schemaVersion, `${at}/versions/${part.key}`, `the section ${part.key}`);
    return [{ part, data: bundle[part.key], version: Number(version) }];
  });
}

function checkVersion(version: unknown, newest: number, path: string, what: string): void {
  if (version === undefined) throw validationError([{ path, message: "is required" }]);
  if (!Number.isInteger(version) || Number(version) < 1) {
    throw validationError([{ path, message: "must be a whole number from 1 on" }]);
  }
  if (Number(version) <= newest) return;
  const message = `A newer Weir wrote ${what}: it has version ${Number(version)}, and this Weir reads versions up to ${newest}. Import it with the newer Weir, or export it again with this one`;
  throw new ApiError("VALIDATION_ERROR", message, { details: [{ path, message }] });
}
