import {
  CONFIG_DOCUMENT_VERSION,
  type ConfigDocument,
  type ConfigImport,
  type ConfigPatch,
  type Settings,
} from "@headworks/capture-contract";
import { ApiError, validationError } from "#api/api-error.ts";
import { type GivenImport, objectAt, pointerName } from "#portable/import-body.ts";
import type { RuleBundles } from "#portable/rule-bundles.ts";
import type { SliceHost } from "#slice.ts";

/** Current settings and rules. */
export function configDocument(
  { settings, clock }: Pick<SliceHost, "settings" | "clock">,
  bundles: RuleBundles,
): ConfigDocument {
  return {
    version: CONFIG_DOCUMENT_VERSION,
    exported_at: new Date(clock.now()).toISOString(),
    settings: withoutSecrets(settings.configured),
    rules: bundles.export(),
  };
}

/** Exported documents end up in mails and repositories, so passwords are left out. */
function withoutSecrets(settings: Settings): Record<string, unknown> {
  const { socks_auth_password: _socks, upstream_proxy: upstream, ...shown } = settings;
  const { auth_password: _upstream, ...shownUpstream } = upstream;
  return { ...shown, upstream_proxy: shownUpstream };
}

/** Imports a document, all or nothing: rules are committed after the settings. Throws 400. */
export function importConfigDocument(
  host: Pick<SliceHost, "settings" | "events">,
  bundles: RuleBundles,
  { document, at, mode, dryRun }: GivenImport,
): ConfigImport {
  const { settings, events } = host;
  const before = settings.configured;
  const parts = documentParts(document, at, sectionsOf(before));
  const change = parts.settings as ConfigPatch;
  const changed = inSettings(at, () => settings.check(change));
  const apply = (): void => inSettings(at, () => settings.patch(change));
  let sections: ConfigImport["sections"] = {};
  if (parts.rules !== undefined) {
    const request = { mode, dryRun, at: `${at}/rules` };
    try {
      sections = bundles.import(parts.rules, { ...request, beforeCommit: apply });
    } catch (error) {
      // Restore the settings if the rules could not be committed.
      if (settings.configured !== before) settings.patch(before);
      throw error;
    }
  } else if (!dryRun) apply();
  if (!dryRun) announce(events, before, settings.configured);
  return { success: true, mode, dry_run: dryRun, settings: [...changed], sections };
}

const MEMBERS: ReadonlySet<string> = new Set(["version", "exported_at", "settings", "rules"]);

/** Names of settings whose values are objects. */
function sectionsOf(settings: Settings): string[] {
  return Object.entries(settings).flatMap(([name, value]) =>
    typeof value === "object" && value !== null && !Array.isArray(value) ? [name] : [],
  );
}

function documentParts(
  input: unknown,
  at: string,
  sections: readonly string[],
): { readonly settings: object; readonly rules: unknown } {
  const document = objectAt(input, at);
  const { version, settings = {}, rules, exported_at: exportedAt } = document;
  if (!Number.isInteger(version) || Number(version) < 1) {
    throw validationError([{ path: `${at}/version`, message: "must be a whole number from 1 on" }]);
  }
  if (Number(version) > CONFIG_DOCUMENT_VERSION) {
    const message = `A newer Weir wrote the document: it has version ${Number(version)}, and this Weir reads versions up to ${CONFIG_DOCUMENT_VERSION}. Import it with the newer Weir, or export it again with this one`;
    throw new ApiError("VALIDATION_ERROR", message, { details: [{ path: `${at}/version`, message }] });
  }
  const details = Object.keys(document)
    .filter((name) => !MEMBERS.has(name))
    .map((name) => ({ path: `${at}/${pointerName(name)}`, message: "unknown property" }));
  if (exportedAt !== undefined && (typeof exportedAt !== "string" || Number.isNaN(Date.parse(exportedAt)))) {
    details.push({ path: `${at}/exported_at`, message: "must be a time" });
  }
  if (details.length > 0) throw validationError(details);
  const given = objectAt(settings, `${at}/settings`);
  for (const name of sections) {
    if (given[name] !== undefined) objectAt(given[name], `${at}/settings/${name}`);
  }
  // Settings hold no traffic, so the spelling of numbers does not matter.
  return { settings: JSON.parse(JSON.stringify(given)) as object, rules };
}

/** Maps error paths `body/<setting>` to paths in the document. */
function inSettings<T>(at: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof ApiError) || error.details === undefined) throw error;
    throw validationError(
      error.details.map(({ path, message }) => ({ path: path.replace(/^body/, `${at}/settings`), message })),
    );
  }
}

/** Notifies clients of changed settings. */
export function announce(events: SliceHost["events"], before: Settings, after: Settings): void {
  if (after === before) return;
  events.changed("config");
  if (after.capture_enabled !== before.capture_enabled) events.changed("capture");
}
