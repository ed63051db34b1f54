import { nullable, oneOf, strictObject, Type, upload } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { MockRule } from "./mock-rule.ts";
import { booleanText, Id } from "./primitives.ts";

const documentFormat = oneOf(["har", "openapi", "postman", "json"], {
  description: "HAR 1.2, OpenAPI 3.0 or 3.1 (JSON or YAML), Postman collection 2.1, or an export of this service",
});

export const ImportMocks = strictObject({
  format: documentFormat,
  data: Type.Unknown({ description: "The document, as text or as an object" }),
  dry_run: Type.Optional(Type.Boolean({ description: "Preview: create nothing" })),
  collection_id: Type.Optional(nullable(Id, { description: "Collection of the new rules" })),
  enabled: Type.Optional(Type.Boolean({ description: "False: all rules are created disabled" })),
  base_url: Type.Optional(
    nullable(Type.String({ maxLength: 4096 }), {
      description: "OpenAPI: base URL instead of the document's `servers`; a path alone applies to every host",
    }),
  ),
});
export type ImportMocks = Static<typeof ImportMocks>;

/** Bytes of a document that rules are made of, by format. A HAR is read entry by entry, the others as a whole. */
export const MAX_MOCK_DOCUMENT_BYTES = {
  har: 104_857_600,
  openapi: 26_214_400,
  postman: 26_214_400,
  json: 26_214_400,
} as const;

/** How rules are made of a document that is sent as it is. */
export const ImportMockDocumentQuery = strictObject({
  format: documentFormat,
  dry_run: Type.Optional(booleanText("Preview: create nothing")),
  collection_id: Type.Optional(
    Type.String({ minLength: 1, maxLength: 64, description: "Collection of the new rules" }),
  ),
  enabled: Type.Optional(booleanText("Whether the rules are active at once")),
  base_url: Type.Optional(
    Type.String({
      maxLength: 4096,
      description: "OpenAPI: base URL instead of the document's `servers`; a path alone applies to every host",
    }),
  ),
  task_id: Type.Optional(Type.String({ maxLength: 64, description: "Id of this import in `Task` events" })),
});

const importResult = {
  imported: Type.Integer({ description: "Number of rules created (or to be created)" }),
  format: Type.String(),
  skipped: Type.Integer({ description: "Parts of the document without a rule" }),
  warnings: Type.Array(Type.String(), {
    description: "What was skipped or guessed: at most 100 sentences; the last one then counts the others",
  }),
};
/** What an import made. */
export const MockImportResult = strictObject({ ...importResult, ids: Type.Array(Id) }, { $id: "MockImportResult" });
/** What an import would make. */
export const MockImportPreview = strictObject(
  { ...importResult, dry_run: Type.Boolean(), rules: Type.Array(MockRule, { description: "The first 200" }) },
  { $id: "MockImportPreview" },
);

/** A document that rules are made of, as it is. */
export const MockDocument = upload(
  ["application/octet-stream", "application/json", "application/yaml"],
  "HAR 1.1 or 1.2 of up to 100 MiB; OpenAPI 3.0 or 3.1 in JSON or YAML, a Postman collection 2.1 or an export of this service, each up to 25 MiB",
);
