import { oneOf, strictObject, Type } from "@headworks/contract-kit";
import { Name } from "./primitives.ts";

const Time = Type.String({ format: "date-time" });

/** Keys that are given out and taken back while the gateway runs. */
export const credentialOperations = {
  listCredentials: {
    method: "GET",
    path: "/consumers/{consumer}/credentials",
    summary: "Keys that were given to a consumer beside those of the document",
    description: "None of them is shown. Those that are retired are forgotten after 30 days.",
    access: "credentials:read",
    params: strictObject({ consumer: Name }),
    responses: {
      200: strictObject({
        consumer: Type.String(),
        credentials: Type.Array(
          strictObject({
            id: Type.String(),
            kind: oneOf(["api_key"]),
            created_at: Time,
            revoked_at: Type.Union([Time, Type.Null()], { description: "Since when it is not good any more" }),
            retire_at: Type.Union([Time, Type.Null()], { description: "When it was asked to end" }),
          }),
        ),
      }),
    },
  },
  issueCredential: {
    method: "POST",
    path: "/consumers/{consumer}/credentials",
    summary: "Give a consumer another API key, good at once and in every worker",
    description:
      "Without `key` one is made up; the answer is the only place where it can be read. Keys that the consumer has already stay good.",
    access: "credentials:write",
    params: strictObject({ consumer: Name }),
    body: strictObject({
      key: Type.Optional(
        Type.String({ minLength: 1, maxLength: 1024, description: "16 to 512 visible ASCII characters" }),
      ),
    }),
    bodyOptional: true,
    responses: {
      201: strictObject({
        consumer: Type.String(),
        credential_id: Type.String(),
        created_at: Time,
        key: Type.Optional(Type.String({ description: "The key that was made up" })),
        note: Type.String(),
      }),
    },
  },
  retireCredential: {
    method: "POST",
    path: "/credentials/{credential}/retire",
    summary: "End a key that was given out, now or at a time",
    access: "credentials:write",
    params: strictObject({ credential: Type.String({ minLength: 1, maxLength: 64 }) }),
    body: strictObject({
      at_ms: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 8_640_000_000_000_000,
          description: "Milliseconds since 1970; now when left out",
        }),
      ),
    }),
    bodyOptional: true,
    responses: {
      200: strictObject({
        credential_id: Type.String(),
        retire_at: Time,
        effective: oneOf(["immediate", "scheduled"]),
      }),
    },
  },
} as const;
