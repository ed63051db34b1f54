export { listArchives } from "./archives.ts";
export type { Archive } from "./archives.ts";
export { LogFile } from "./log-file.ts";
export type { LogClock, LogFileLimits, LogFileOptions, LogFileStatus } from "./log-file.ts";
export { lastLines, linesSince } from "./log-tail.ts";
export type { LogTail } from "./log-tail.ts";
export type { Rotation } from "./rotation-period.ts";
export { visibleJson, visibleText } from "./visible-text.ts";
export type { OverflowRule } from "./waiting-lines.ts";
