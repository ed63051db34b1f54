// Tested by config-document.test.ts
import { CONFIG_DOCUMENT_VERSION, plannedSwitchProblem } from "@headworks/capture-contract";
import type { ConfigDocument, ConfigImport, ConfigPatch, Settings } from "@headworks/capture-contract";
import { ApiError, validationError } from "#api/api-error.ts";
import type { GivenImport } from "#portable/import-body.ts";
import { objectAt, pointerName } from "#portable/json-document.ts";
import type { RuleBundles } from "#portable/rule-bundles.ts";
import type { SliceHost } from "#slice.ts";

/** Settings and rules as they are now. */
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

/** A password that went along would end up in mails and repositories. */
function withoutSecrets(settings: Settings): Record<string, unknown> {
  const { socks_auth_password: _socks, upstream_proxy: upstream, ...shown } = settings;
  const { auth_password: _upstream, ...shownUpstream } = upstream;
  return { ...shown, upstream_proxy: shownUpstream };
}

/** Takes a document in, all or nothing: rules are committed only after the settings were. Throws 400 or 501. */
export function importConfigDocument(
  host: Pick<SliceHost, "settings" | "events">,
  bundles: RuleBundles,
  { document, at, mode, dryRun }: GivenImport,
): ConfigImport {
  const { settings, events } = host;
  const parts = documentParts(document, at);
  const before = settings.configured;
  const change = parts.settings as ConfigPatch;
  const changed = inSettings(at, () => settings.check(change));
  refusePlanned(before, change);
  const apply = (): void => inSettings(at, () => settings.patch(change));
  let sections: ConfigImport["sections"] = {};
  if (parts.rules !== undefined) {
    const request = { mode, dryRun, at: `${at}/rules` };
    try {
      sections = bundles.import(parts.rules, { ...request, beforeCommit: apply });
    } catch (error) {
      // The settings were written and the rules could then not be committed.
      if (settings.configured !== before) settings.patch(before);
      throw error;
    }
  } else if (!dryRun) apply();
  if (!dryRun) announce(events, before, settings.configured);
  return { success: true, mode, dry_run: dryRun, settings: [...changed], sections };
}

const MEMBERS: ReadonlySet<string> = new Set(["version", "exported_at", "settings", "rules"]);

function documentParts(input: unknown, at: string): { readonly settings: object; readonly rules: unknown } {
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
  if (given["upstream_proxy"] !== undefined) objectAt(given["upstream_proxy"], `${at}/settings/upstream_proxy`);
  return { settings: given, rules };
}

/** Runs something that complains about `body/<setting>` and lets it complain about the place in the document. */
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

/** Throws 501 when a change turns on what is not part of this version. */
export function refusePlanned(before: Settings, change: ConfigPatch): void {
  const after = { ...before, ...change, upstream_proxy: { ...before.upstream_proxy, ...change.upstream_proxy } };
  const problem = plannedSwitchProblem(after);
  if (problem !== undefined) throw new ApiError("NOT_IMPLEMENTED", problem);
}

/** Tells others that settings changed. */
export function announce(events: SliceHost["events"], before: Settings, after: Settings): void {
  if (after === before) return;
  events.changed("config");
  if (after.capture_enabled !== before.capture_enabled) events.changed("capture");
}
