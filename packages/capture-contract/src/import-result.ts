import { strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { Id } from "./primitives.ts";

/** What limits took because of an import; absent where they took nothing. */
export const IMPORT_LOSS = {
  dropped_count: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: "Its oldest entries that were dropped because of `max_requests` when it became the active session",
    }),
  ),
  displaced_count: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: "Older entries of other sessions that were dropped because of `max_total_size_mb`",
    }),
  ),
};

/** What came of an import. */
export const ImportResult = strictObject(
  {
    session_id: Id,
    imported_count: Type.Integer(),
    skipped_count: Type.Integer(),
    ...IMPORT_LOSS,
    errors: Type.Array(Type.String(), {
      description:
        "What was skipped, cut or dropped because of a limit: at most 100 sentences, those about entries as `entry N: …`",
    }),
  },
  { $id: "ImportResult" },
);
export type ImportResult = Static<typeof ImportResult>;
