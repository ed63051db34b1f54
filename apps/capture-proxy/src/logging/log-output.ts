import { isDeepStrictEqual } from "node:util";
import type { Settings } from "@headworks/capture-contract";
import { LogFile, lastLines, linesSince, listArchives } from "@headworks/log-file";
import type {
  Archive,
  DescriptorLines,
  LogClock,
  LogFileLimits,
  LogFileStatus,
  LogTail,
  Rotation,
} from "@headworks/log-file";
import { jsonLine, readRecord, textLines } from "./log-record.ts";
import type { LogRecord } from "./log-record.ts";
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
  /** Standard output, or standard error where standard output belongs to somebody else. */
  readonly stream: LineStream;
  readonly hasColours: boolean;
  /** JSON lines whatever the settings say; for a log that ends before they are known. */
  readonly isJson: boolean;
  /** False: nothing is ever written to a file. */
  readonly hasFile: boolean;
  readonly clock: LogClock;
  /** Says a sentence where somebody sees it although the log itself is in trouble. */
  readonly complain: (sentence: string) => void;
}

/** What a logger of pino writes to. */
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
    const { clock, complain } = this.#options;
    this.#file = new LogFile({
      path: this.path,
      rotation: this.#rotation,
      clock,
      ...limitsOf(settings),
      onProblem: (sentence) => complain(`${sentence}. The log goes on without it, and it is tried again`),
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
