import { isDeepStrictEqual, styleText } from "node:util";
import type { Settings } from "@headworks/capture-contract";
import {
  type Archive,
  type DescriptorLines,
  lastLines,
  linesSince,
  listArchives,
  type LogClock,
  LogFile,
  type LogFileLimits,
  type LogFileStatus,
  type LogTail,
  type Rotation,
  visibleJson,
  visibleText,
} from "@headworks/log-file";
import type { LogOutput } from "./service-logs.ts";

type LogSettings = Settings["log_config"];

const MIB = 1_048_576;
/** Lines that wait for the settings, or for the file. More only come when something is wrong, and the first ones say what. */
const MAX_EARLY = 1000;

/** Where lines go besides the file. Nothing of it throws or waits. */
export type LineStream = Pick<DescriptorLines, "write" | "flushSync">;

export interface LogOutputOptions {
  /** The file, absolute. */
  readonly path: string;
  /** Standard output, or standard error where standard output carries data. */
  readonly stream: LineStream;
  readonly hasColours: boolean;
  /** JSON lines whatever the settings say; for a log that ends before they are known. */
  readonly isJson: boolean;
  /** False: nothing is ever written to a file. */
  readonly hasFile: boolean;
  readonly clock: LogClock;
  /** Reports a problem of the log itself outside of the log. */
  readonly reportProblem: (sentence: string) => void;
}

/** The destination of a pino logger. */
export interface LogDestination extends LogOutput {
  /** Takes a line of pino. */
  write(line: string): void;
  /** Brings out what a process that ends at once would lose. */
  flushSync(): void;
}

/** Opens the stream's side; the file follows when its directory is known to be free. */
export function openLogOutput(options: LogOutputOptions): LogDestination {
  return new RotatingLogOutput(options);
}

/**
 * Where the logger writes: the stream, and the file beside it. Every line is made here, so that no value in it can end it
 * or act on a terminal, and no secret gets out.
 */
class RotatingLogOutput implements LogDestination {
  readonly path: string;
  readonly #options: LogOutputOptions;
  #isJson: boolean;
  #early: LogRecord[] | undefined = [];
  /** Records that the file gets when it is opened. */
  #beforeFile: LogRecord[] | undefined;
  #rotation: Rotation = { mode: "never" };
  #file: LogFile | undefined;
  #configured: LogSettings | undefined;
  #closing: Promise<void> = Promise.resolve();

  constructor(options: LogOutputOptions) {
    this.#options = options;
    this.#isJson = options.isJson;
    this.#beforeFile = options.hasFile ? [] : undefined;
    this.path = options.path;
  }

  write(line: string): void {
    const record = readRecord(line) ?? { level: 50, time: this.#options.clock.now(), msg: line };
    if (this.#early !== undefined) {
      if (this.#early.length < MAX_EARLY) this.#early.push(record);
    } else this.#put(record);
  }

  begin(settings: LogSettings): void {
    this.#isJson ||= settings.json_format;
    this.#rotation = rotationOf(settings);
    this.#letOut();
  }

  openFile(settings: LogSettings): void {
    this.#configured = settings;
    this.#openFile(settings);
    for (const record of this.#beforeFile?.splice(0) ?? []) this.#file?.write(this.#fileText(record));
    this.#beforeFile = undefined;
  }

  configure(settings: LogSettings): void {
    if (isDeepStrictEqual(settings, this.#configured)) return;
    this.#configured = settings;
    if (!settings.enabled) this.#closeFile();
    else if (this.#file === undefined) this.#openFile(settings);
    else this.#file.setLimits(limitsOf(settings));
  }

  status(): LogFileStatus | undefined {
    return this.#file?.status;
  }

  async archives(): Promise<Archive[]> {
    return await listArchives(this.path);
  }

  rotate(): Promise<string> | undefined {
    return this.#file?.rotate();
  }

  async tail(limit: number, cursor: string | undefined): Promise<LogTail | undefined> {
    return cursor === undefined ? await lastLines(this.path, limit) : await linesSince(this.path, cursor, limit);
  }

  get isBehind(): boolean {
    const status = this.#file?.status;
    return status !== undefined && status.problem === undefined && status.waitingLines > 64;
  }

  async settled(): Promise<void> {
    await this.#file?.settled();
    await this.#closing;
  }

  async close(): Promise<void> {
    this.#letOut();
    this.#closeFile();
    await this.#closing;
    this.#options.stream.flushSync();
  }

  flushSync(): void {
    this.#letOut();
    this.#file?.flushSync();
    this.#options.stream.flushSync();
  }

  get hasFile(): boolean {
    return this.#options.hasFile;
  }

  #letOut(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const record of early) this.#put(record);
  }

  #put(record: LogRecord): void {
    const text = this.#fileText(record);
    const isColoured = this.#options.hasColours && !this.#isJson;
    this.#options.stream.write(isColoured ? textLines(record, true) : text);
    if (this.#file !== undefined) this.#file.write(text);
    else if (this.#beforeFile !== undefined && this.#beforeFile.length < MAX_EARLY) this.#beforeFile.push(record);
  }

  #fileText(record: LogRecord): string {
    return this.#isJson ? jsonLine(record) : textLines(record, false);
  }

  #openFile(settings: LogSettings): void {
    if (!settings.enabled || !this.#options.hasFile) return;
    const { clock, reportProblem } = this.#options;
    this.#file = new LogFile({
      path: this.path,
      rotation: this.#rotation,
      clock,
      ...limitsOf(settings),
      onProblem: (sentence) => reportProblem(`${sentence}. The log goes on without it, and it is tried again`),
      onRecovered: (dropped) => {
        const msg =
          dropped === 0 ? "The log file is written again" : "The log file is written again; lines are missing";
        this.#put({ level: 40, time: clock.now(), msg, missing: dropped });
      },
    });
  }

  #closeFile(): void {
    const file = this.#file;
    this.#file = undefined;
    this.#beforeFile = undefined;
    if (file !== undefined) this.#closing = Promise.all([this.#closing, file.close()]).then(() => undefined);
  }
}

function rotationOf({ rotation }: LogSettings): Rotation {
  return rotation.mode === "size" ? { mode: "size", sizeBytes: rotation.size_mb * MIB } : { mode: rotation.mode };
}

function limitsOf(settings: LogSettings): LogFileLimits {
  return {
    maxFiles: settings.max_files,
    maxFileBytes: settings.max_file_size_mb * MIB,
    isAsync: settings.async_writing,
    bufferLines: settings.async_buffer_size,
    overflow: settings.async_mode,
  };
}

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
 * The record for people: time, level, message, and facts as `name=value`. Headers, bodies and the stack frames of an error follow
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
 * The message is one line, whatever it contains; the stack frames follow. Only text after the message is read as frames:
 * a message may contain lines that look like them.
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
  const summary = typeof code === "string" ? `${text} (${code})` : text;
  if (typeof stack !== "string" || typeof message !== "string") return [summary];
  const end = stack.indexOf(message);
  const rest = end === -1 ? "" : stack.slice(end + message.length);
  const frames = rest.split("\n").filter((line) => /^ {4}at /.test(line));
  return [summary, ...frames.slice(0, 50)];
}

function headerLines(headers: unknown): string[] {
  if (!Array.isArray(headers)) return [];
  return headers.map((pair: unknown) =>
    Array.isArray(pair) ? `${headerText(pair[0])}: ${headerText(pair[1])}` : headerText(pair),
  );
}

/** Parsed JSON may have its own `toString`. */
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
