import { defineOperations, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { COUNTED, Id, IdParams, Timestamp } from "./primitives.ts";

export const FocusHost = strictObject({ id: Id, pattern: Type.String(), created_at: Timestamp }, { $id: "FocusHost" });
export type FocusHost = Static<typeof FocusHost>;

export const focusOperations = defineOperations({
  listFocusHosts: {
    method: "GET",
    path: "/focus",
    summary: "List focus patterns, oldest first",
    access: "config:read",
    responseFields: COUNTED,
    responses: { 200: Type.Array(FocusHost) },
  },
  addFocusHost: {
    method: "POST",
    path: "/focus",
    summary: "Add a focus pattern; an existing one is returned",
    access: "config:write",
    body: strictObject({
      pattern: Type.String({
        minLength: 1,
        maxLength: 255,
        description: "A host, `*.domain` for its subdomains, or any text with `*`",
      }),
    }),
    responses: { 201: FocusHost },
  },
  clearFocusHosts: {
    method: "DELETE",
    path: "/focus",
    summary: "Remove all focus patterns",
    access: "config:write",
    responses: { 204: null },
  },
  removeFocusHost: {
    method: "DELETE",
    path: "/focus/{id}",
    summary: "Remove a focus pattern",
    access: "config:write",
    params: IdParams,
    responses: { 204: null },
  },
});
