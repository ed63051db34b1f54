interface RedactableSchema {
  readonly properties?: Readonly<Record<string, RedactableSchema>>;
  readonly items?: RedactableSchema;
  readonly "x-secret"?: boolean;
}

export const REDACTED = "[REDACTED]";

/** A copy of `value` in which everything that `schema` marks with `x-secret` is `[REDACTED]`; absent secrets stay null. */
export function redact(schema: unknown, value: unknown): unknown {
  const facts = (schema ?? {}) as RedactableSchema;
  if (facts["x-secret"] === true) return value === null || value === undefined ? value : REDACTED;
  if (Array.isArray(value)) return value.map((entry) => redact(facts.items, entry));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, redact(facts.properties?.[key], entry)]));
}
