import { randomUUID } from "node:crypto";
import type { DocumentInput } from "@headworks/gateway-contract";
import { mapAnnotated } from "./annotated-fields.ts";
import { documentSchema } from "./read-document.ts";
import { isReference, redactedText } from "./secrets.ts";

/** A document without inline secrets, for callers that may edit but not read them. */
export interface MaskedDocument {
  /** Unguessable marks replace the secrets. */
  readonly document: DocumentInput;
  /**
   * Puts secrets back where secrets are allowed. A mark moved to another field becomes the redacted form, since it
   * would reveal its secret there.
   */
  restored(made: unknown): unknown;
}

export function maskSecrets(document: DocumentInput): MaskedDocument {
  const prefix = `secret ${randomUUID()} `;
  const secrets = new Map<string, string>();
  const masked = mapAnnotated(documentSchema, document, "x-secret", (text) => {
    if (isReference(text)) return text;
    const mark = `${prefix}${secrets.size}`;
    secrets.set(mark, text);
    return mark;
  });
  const redacted = (value: unknown): unknown => {
    if (typeof value === "string") {
      const secret = secrets.get(value);
      return secret === undefined ? value : redactedText(secret);
    }
    if (Array.isArray(value)) return value.map(redacted);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, redacted(member)]));
  };
  return {
    document: masked,
    restored: (made) => {
      if (secrets.size === 0) return made;
      return redacted(mapAnnotated(documentSchema, made, "x-secret", (text) => secrets.get(text) ?? text));
    },
  };
}
