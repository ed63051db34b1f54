import type { Settings } from "@headworks/capture-contract";
import type { Archive, LogFileStatus, LogTail } from "@headworks/log-file";

/** The log as far as its files go; what slices and the composition root see of it. */
export interface ServiceLogs {
  /** Where the file is, or would be. */
  readonly path: string;
  /** Undefined while no file is written. */
  status(): LogFileStatus | undefined;
  /** Newest first. */
  archives(): Promise<Archive[]>;
  /** Puts the file away; gives the archive's path. Rejects with a sentence; undefined when no file is written. */
  rotate(): Promise<string> | undefined;
  /** The last lines, or those after a cursor; undefined for a text that is no cursor. */
  tail(limit: number, cursor: string | undefined): Promise<LogTail | undefined>;
  /** Takes over what holds at once; opens or closes the file. */
  configure(settings: Settings["log_config"]): void;
  /** True while so much waits for the disk that writers which can wait should. */
  readonly isBehind: boolean;
  /** Resolves when what was logged so far is on the disk, or cannot be written. */
  settled(): Promise<void>;
}

/** The log from its first line on, before settings are known, to its last. */
export interface LogOutput extends ServiceLogs {
  /** The settings are known: lines that waited for that come out in their form. */
  begin(settings: Settings["log_config"]): void;
  /** The data directory is this process's own: the file may be written. */
  openFile(settings: Settings["log_config"]): void;
  /** Whether there ever is a file. */
  readonly hasFile: boolean;
  /** Brings the last lines out. */
  close(): Promise<void>;
}
