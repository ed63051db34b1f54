import { styleText } from "node:util";
import { visibleJson, visibleText } from "@headworks/log-file";

const REDACTED = "[REDACTED]";

/** Names of secrets, which the log redacts in every spelling: `api_key`, `apiKey`, `X-API-Key`. */
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

type Style = "red" | "yellow" | "green" | "cyan" | "dim";

/** One event of the log. */
export type LogRecord = Readonly<Record<string, unknown>>;

/**
 * Facts that were made for the log, with what is to be hidden hidden already: headers as pairs, and a piece of a body.
 * Secrets are not looked for in them.
 */
const PREPARED: ReadonlySet<string> = new Set(["headers", "body"]);

/** Reads a line of the logger; secrets are hidden. Undefined for what is no JSON object. */
export function readRecord(json: string): LogRecord | undefined {
  try {
    const record: unknown = JSON.parse(json);
    if (typeof record !== "object" || record === null || Array.isArray(record)) return undefined;
    return redacted(record as LogRecord);
  } catch {
    return undefined;
  }
}

function redacted(record: LogRecord): LogRecord {
  const prepared = Object.entries(record).filter(([name]) => PREPARED.has(name));
  const others = Object.fromEntries(Object.entries(record).filter(([name]) => !PREPARED.has(name)));
  return { ...(withoutSecrets(others) as LogRecord), ...Object.fromEntries(prepared) };
}

/** The record as one line of JSON in which nothing is invisible. */
export function jsonLine(record: LogRecord): string {
  return `${visibleJson(JSON.stringify(record))}\n`;
}

const NAMES: readonly (readonly [number, string, Style])[] = [
  [50, "ERROR", "red"],
  [40, "WARN ", "yellow"],
  [30, "INFO ", "green"],
  [20, "DEBUG", "cyan"],
  [0, "TRACE", "dim"],
];

/**
 * The record for people: time, level, message, and facts as `name=value`. Headers, bodies and the places of an error follow
 * on lines of their own, each behind four spaces; no value can begin a line otherwise.
 */
export function textLines(record: LogRecord, hasColours: boolean): string {
  const { level, time, msg, pid: _pid, hostname: _hostname, name: _name, err, headers, body, ...facts } = record;
  const paint = (style: Style, text: string): string =>
    hasColours && text !== "" ? styleText(style, text, { validateStream: false }) : text;
  const [, label, style] = NAMES.find(([floor]) => Number(level) >= floor) ?? [0, "TRACE", "dim" as const];
  const pairs = Object.entries(facts).map(([key, value]) => `${visibleText(key)}=${factText(value)}`);
  const line = [
    paint("dim", timeText(time)),
    paint(style, label),
    visibleText(typeof msg === "string" ? msg : (JSON.stringify(msg) ?? "")),
    paint("dim", pairs.join(" ")),
  ];
  const below = [...errorLines(err), ...headerLines(headers), ...bodyLines(body)];
  return `${[line.join(" ").trimEnd(), ...below.map((text) => `    ${visibleText(text)}`)].join("\n")}\n`;
}

function timeText(time: unknown): string {
  const isTime = typeof time === "number" && Math.abs(time) <= 8.64e15;
  return isTime ? new Date(time).toISOString() : visibleText(JSON.stringify(time) ?? "");
}

function factText(value: unknown): string {
  if (typeof value === "string" && /^[^\s"=]+$/.test(value)) return visibleText(value);
  return visibleText(JSON.stringify(value) ?? "undefined");
}

/**
 * The message is one line, whatever is in it; behind it come the places. Only what follows the message is taken for
 * places: a message may hold lines that look like them.
 */
function errorLines(error: unknown): string[] {
  if (typeof error !== "object" || error === null) return [];
  const { stack, message, type, code } = error as {
    stack?: unknown;
    message?: unknown;
    type?: unknown;
    code?: unknown;
  };
  const text = `${typeof type === "string" ? type : "Error"}: ${typeof message === "string" ? message : ""}`;
  const told = typeof code === "string" ? `${text} (${code})` : text;
  if (typeof stack !== "string" || typeof message !== "string") return [told];
  const end = stack.indexOf(message);
  const rest = end === -1 ? "" : stack.slice(end + message.length);
  const places = rest.split("\n").filter((place) => /^ {4}at /.test(place));
  return [told, ...places.slice(0, 50)];
}

function headerLines(headers: unknown): string[] {
  if (!Array.isArray(headers)) return [];
  return headers.map((pair: unknown) =>
    Array.isArray(pair) ? `${headerText(pair[0])}: ${headerText(pair[1])}` : headerText(pair),
  );
}

/** What came of JSON has its own idea of how it becomes a string. */
function headerText(part: unknown): string {
  return typeof part === "string" ? part : (JSON.stringify(part) ?? "undefined");
}

function bodyLines(body: unknown): string[] {
  return typeof body === "string" ? body.split(/\r?\n/).map((line) => `| ${line}`) : [];
}

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

/** Whether a value of this name is secret. */
export function isSecretName(name: string): boolean {
  return name.length <= 64 && SECRET_NAMES.test(name.toLowerCase().replaceAll(/[-_. ]/g, ""));
}

export function textWithoutSecrets(text: string): string {
  let result = text;
  for (const [pattern, replacement] of SECRET_TEXTS) result = result.replace(pattern, replacement);
  return result;
}
