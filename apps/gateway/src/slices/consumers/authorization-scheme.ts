/** An `Authorization` value, taken apart (RFC 9110 section 11.6.2). */
export interface SchemeCredential {
  /** In lower case. */
  readonly scheme: string;
  /** What follows the scheme and the spaces behind it. */
  readonly rest: string;
}

/** Splits an `Authorization` value into its scheme and the rest. Never fails: what is empty has an empty scheme. */
export function schemeOf(value: string): SchemeCredential {
  const end = value.search(/[ \t]/);
  if (end === -1) return { scheme: value.toLowerCase(), rest: "" };
  return { scheme: value.slice(0, end).toLowerCase(), rest: value.slice(end).trim() };
}
