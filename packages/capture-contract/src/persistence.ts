import { defineOperations, nullable, oneOf, strictObject, Type, upload } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { booleanText, Timestamp } from "./primitives.ts";

/** The version of the form of bundles; one with a greater number is refused. */
export const BUNDLE_VERSION = 1;

/** Largest body of an import. */
export const MAX_IMPORT_BYTES = 67_108_864;

/**
 * All rules as one document: `version`, `exported_at`, `versions` (of each section's form), and a section for each kind of
 * rules, such as `mocks` or `block_list`.
 */
export type RuleBundle = Readonly<Record<string, unknown>> & {
  readonly version: number;
  readonly exported_at: string;
  readonly versions: Readonly<Record<string, number>>;
};

const counts = strictObject(
  {
    added: Type.Integer(),
    updated: Type.Integer(),
    removed: Type.Integer(),
    unchanged: Type.Integer(),
  },
  { $id: "ImportCounts" },
);

/** The effect of an import, or of a dry run, on each kind of rules. */
export const ImportedSections = Type.Record(Type.String(), counts, {
  description: "By section of the bundle; missing sections are unchanged",
});

const mode = Type.Optional(
  oneOf(["merge", "replace"], {
    description:
      "`merge` (default) adds rules and overwrites those with the same id; `replace` also deletes all other rules of these kinds",
  }),
);

export const importQuery = strictObject({
  mode,
  dry_run: Type.Optional(booleanText("Check and count only, change nothing")),
});

export const RulesImport = strictObject(
  {
    success: Type.Boolean(),
    mode: oneOf(["merge", "replace"]),
    dry_run: Type.Boolean(),
    sections: ImportedSections,
  },
  { $id: "RulesImport" },
);
export type RulesImport = Static<typeof RulesImport>;

export const persistenceOperations = defineOperations({
  exportRules: {
    method: "GET",
    path: "/persistence/export",
    summary: "All rules as one document",
    access: "persistence:export",
    responses: {
      200: strictObject({ data: Type.String({ description: "The bundle as JSON text" }) }),
    },
  },
  importRules: {
    method: "POST",
    path: "/persistence/import",
    summary: "Import rules from a bundle, all or nothing",
    description:
      "The body is the bundle, or `{data, mode, dry_run}` with the bundle as an object or JSON text. A bundle of a newer version is refused.",
    access: "persistence:write",
    query: importQuery,
    body: upload(["application/json"], "A bundle from `GET /persistence/export`, at most 64 MiB"),
    responses: { 200: RulesImport },
  },
  saveRules: {
    method: "POST",
    path: "/persistence/save",
    summary: "Save one snapshot of all rules to restore later",
    description: "Overwrites the previous snapshot, so it needs the header `X-Weir-Confirm: true`.",
    access: "persistence:write",
    responses: { 200: strictObject({ success: Type.Boolean(), saved_at: Timestamp }) },
  },
  loadRules: {
    method: "POST",
    path: "/persistence/load",
    summary: "Restore the saved snapshot of all rules",
    description: "Rules created since are deleted. Without a snapshot, nothing changes and `saved_at` is null.",
    access: "persistence:write",
    responses: {
      200: strictObject({ success: Type.Boolean(), saved_at: nullable(Timestamp), sections: ImportedSections }),
    },
  },
});
