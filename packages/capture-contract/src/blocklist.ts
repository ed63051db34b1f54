import { defineOperations, nullable, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { COUNTED, CreatedId, Id, IdParams, NoDevice, Timestamp, ToggleBody, ToggleResult } from "./primitives.ts";

const statusCode = Type.Integer({
  minimum: 200,
  maximum: 599,
  description: "Status of the response to blocked requests",
});
const responseBody = Type.String({ maxLength: 1_048_576 });
const contentType = Type.String({ minLength: 1, maxLength: 255, pattern: "^[\\x21-\\x7e][\\x20-\\x7e]*$" });
const pattern = Type.String({
  minLength: 1,
  maxLength: 255,
  description: "`domain` including its subdomains, `*.domain` for subdomains only, any text with `*`, or a network",
});

export const BlockEntry = strictObject(
  {
    id: Id,
    pattern: Type.String(),
    note: nullable(Type.String()),
    enabled: Type.Boolean(),
    hit_count: Type.Integer(),
    status_code: Type.Integer(),
    response_body: Type.String(),
    content_type: Type.String(),
    created_at: Timestamp,
    updated_at: Timestamp,
    device_id: NoDevice,
  },
  { $id: "BlockEntry" },
);
export type BlockEntry = Static<typeof BlockEntry>;

const writable = {
  pattern,
  note: Type.Optional(nullable(Type.String({ maxLength: 4096 }), { description: "Reason for the entry" })),
  enabled: Type.Optional(Type.Boolean({ description: "Whether the entry is active" })),
  status_code: Type.Optional(statusCode),
  response_body: Type.Optional(nullable(responseBody, { description: "Body of that response" })),
  content_type: Type.Optional(nullable(contentType, { description: "Media type of that body" })),
  device_id: Type.Optional(NoDevice),
};

/** Body of a create. */
export const NewBlockEntry = strictObject(writable);
export type NewBlockEntry = Static<typeof NewBlockEntry>;

/** Body of an update: what GET returned may be sent back; its read-only fields are not changes. */
export const BlockEntryUpdate = strictObject({
  ...writable,
  id: Type.Optional(Id),
  hit_count: Type.Optional(Type.Integer()),
  created_at: Type.Optional(Timestamp),
  updated_at: Type.Optional(Timestamp),
});
export type BlockEntryUpdate = Static<typeof BlockEntryUpdate>;

export const blocklistOperations = defineOperations({
  listBlockEntries: {
    method: "GET",
    path: "/blocklist",
    summary: "List block entries, newest first",
    access: "blocklist:read",
    responseFields: COUNTED,
    responses: { 200: Type.Array(BlockEntry) },
  },
  createBlockEntry: {
    method: "POST",
    path: "/blocklist",
    summary: "Block a host pattern",
    access: "blocklist:write",
    body: NewBlockEntry,
    responses: { 201: CreatedId },
  },
  getBlocklistStats: {
    method: "GET",
    path: "/blocklist/stats",
    summary: "Number of entries and hits",
    access: "blocklist:read",
    responses: {
      200: strictObject({
        total: Type.Integer(),
        enabled: Type.Integer(),
        disabled: Type.Integer(),
        total_hits: Type.Integer(),
      }),
    },
  },
  getBlockEntry: {
    method: "GET",
    path: "/blocklist/{id}",
    summary: "One block entry",
    access: "blocklist:read",
    params: IdParams,
    responses: { 200: BlockEntry },
  },
  updateBlockEntry: {
    method: "PUT",
    path: "/blocklist/{id}",
    summary: "Update a block entry",
    access: "blocklist:write",
    params: IdParams,
    body: BlockEntryUpdate,
    responses: { 200: BlockEntry },
  },
  deleteBlockEntry: {
    method: "DELETE",
    path: "/blocklist/{id}",
    summary: "Delete a block entry",
    access: "blocklist:delete",
    params: IdParams,
    responses: { 204: null },
  },
  toggleBlockEntry: {
    method: "POST",
    path: "/blocklist/{id}/toggle",
    summary: "Enable or disable a block entry",
    access: "blocklist:write",
    params: IdParams,
    body: ToggleBody,
    bodyOptional: true,
    responses: { 200: ToggleResult },
  },
});
