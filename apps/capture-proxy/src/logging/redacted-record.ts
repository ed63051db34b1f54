const REDACTED = "[REDACTED]";

/** Names of what nobody may read in a log, however they are written: `api_key`, `apiKey`, `X-API-Key`. */
const SECRET_NAMES =
  /^(?:x?(?:proxy)?authorization|(?:set)?cookie2?|(?:x?api|access|secret|private|signing|encryption)key|xapikey|(?:[a-z]{0,20})(?:password|passwd|passphrase|secret|token|credentials?))$/;

/** Secrets in the middle of a text. Each is bounded, so that a long text costs its length and no more. */
const SECRET_TEXTS: readonly (readonly [RegExp, string])[] = [
  [/:\/\/[^\s/?#@"']{1,512}@/g, `://${REDACTED}@`],
  [/\b(Bearer|Basic|Digest|Negotiate|NTLM) +[A-Za-z0-9._~+/=-]{6,}/gi, `$1 ${REDACTED}`],
  [
    /([?&;](?:access_token|refresh_token|id_token|auth_token|token|api_?key|key|password|passwd|pwd|secret|client_secret|signature|sig|code|x-amz-signature|x-amz-security-token)=)[^&;\s#"']+/gi,
    `$1${REDACTED}`,
  ],
  [/-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[^-]{0,20000}(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----)?/g, REDACTED],
];

/** Deeper than anything that is logged on purpose. */
const MAX_LEVELS = 12;

/** A copy without secrets, as names and the shapes of texts show them. Whatever lies too deep is left out. */
export function withoutSecrets(value: unknown, level = 0): unknown {
  if (typeof value === "string") return textWithoutSecrets(value);
  if (typeof value !== "object" || value === null) return value;
  if (level > MAX_LEVELS) return "…";
  if (Array.isArray(value)) return value.map((entry) => withoutSecrets(entry, level + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, entry]) => [
      name,
      isSecretName(name) && entry !== null && entry !== "" ? REDACTED : withoutSecrets(entry, level + 1),
    ]),
  );
}

/** Whether a value of this name is for nobody's eyes. */
export function isSecretName(name: string): boolean {
  return name.length <= 64 && SECRET_NAMES.test(name.toLowerCase().replaceAll(/[-_. ]/g, ""));
}

export function textWithoutSecrets(text: string): string {
  let result = text;
  for (const [pattern, replacement] of SECRET_TEXTS) result = result.replace(pattern, replacement);
  return result;
}
