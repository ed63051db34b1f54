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

/** What an import did to each kind of rules, or would do. */
export const ImportedSections = Type.Record(Type.String(), counts, {
  description: "By section of the bundle; sections it does not have are left alone",
});

const mode = Type.Optional(
  oneOf(["merge", "replace"], {
    description:
      "`merge`, when left out: rules are added or overwrite those with the same id; `replace`: afterwards there are no others of these kinds",
  }),
);

export const importQuery = strictObject({
  mode,
  dry_run: Type.Optional(booleanText("Check everything and count, change nothing")),
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
    summary: "Take rules in from a bundle, all or nothing",
    description:
      "The body is the bundle, or `{data, mode, dry_run}` with the bundle as an object or as JSON text. A bundle of a newer version is refused.",
    access: "persistence:write",
    query: importQuery,
    body: upload(["application/json"], "A bundle of `GET /persistence/export`, at most 64 MiB"),
    responses: { 200: RulesImport },
  },
  saveRules: {
    method: "POST",
    path: "/persistence/save",
    summary: "Keep the rules as they are now, to come back to",
    description: "Needs the header `X-Weir-Confirm: true`: what was saved before is overwritten.",
    access: "persistence:write",
    responses: { 200: strictObject({ success: Type.Boolean(), saved_at: Timestamp }) },
  },
  loadRules: {
    method: "POST",
    path: "/persistence/load",
    summary: "Put the rules back as they were saved",
    description: "Rules made since are removed. When nothing was saved, nothing changes and `saved_at` is null.",
    access: "persistence:write",
    responses: {
      200: strictObject({ success: Type.Boolean(), saved_at: nullable(Timestamp), sections: ImportedSections }),
    },
  },
});
