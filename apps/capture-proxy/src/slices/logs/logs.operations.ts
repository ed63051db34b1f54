import { dirname } from "node:path";
import type {
  LogChange,
  LogRotation,
  LogStatus,
  OverriddenSettings,
  Settings,
  logsOperations,
} from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { ApiError, validationError } from "#api/api-error.ts";
import type { SliceHost } from "#slice.ts";
import type { TrafficLog } from "./traffic-log.ts";

type LogSettings = Settings["log_config"];

export function createLogsOperations(
  host: Pick<SliceHost, "settings" | "events" | "logs" | "log">,
  traffic: Pick<TrafficLog, "logged" | "dropped" | "waiting">,
): Handlers<typeof logsOperations> {
  const { settings, events } = host;
  return {
    getLogs: async () => ({ status: 200, body: await status(host, traffic) }),
    updateLogs: async ({ body }) => {
      filesOf(host);
      const before = settings.configured;
      withShortPaths(() => settings.patch(settingsChange(body, before.log_config)));
      if (settings.configured !== before) {
        events.changed("config");
        events.changed("logs");
      }
      const after = await status(host, traffic);
      return { status: 200, body: { ...after, message: savedSentence(after) } };
    },
    rotateLogs: async () => {
      const rotatedTo = await rotate(host);
      events.changed("logs");
      return { status: 200, body: { ...(await status(host, traffic)), rotated_to: rotatedTo } };
    },
    tailLogs: async ({ query }) => {
      const tail = await readable(filesOf(host).tail(query.limit ?? 100, query.cursor));
      if (tail === undefined) throw validationError([{ path: "query/cursor", message: "is not one of this log" }]);
      return { status: 200, body: { lines: [...tail.lines], next_cursor: tail.cursor, missed: tail.isMissing } };
    },
  };
}

function filesOf({ logs }: Pick<SliceHost, "logs">): NonNullable<SliceHost["logs"]> {
  if (logs === undefined) throw new ApiError("SERVICE_UNAVAILABLE", "This process does not write its log to a file");
  return logs;
}

async function rotate(host: Pick<SliceHost, "logs">): Promise<string> {
  const rotation = filesOf(host).rotate();
  if (rotation === undefined) {
    throw new ApiError("CONFLICT", "The log is not written to a file; enable file logging first");
  }
  try {
    return await rotation;
  } catch (error) {
    throw new ApiError("SERVICE_UNAVAILABLE", (error as Error).message, { cause: error });
  }
}

async function readable<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
    throw new ApiError("SERVICE_UNAVAILABLE", `The log's files cannot be read: ${reason}`, { cause: error });
  }
}

async function status(
  host: Pick<SliceHost, "settings" | "logs" | "log">,
  traffic: Pick<TrafficLog, "logged" | "dropped" | "waiting">,
): Promise<LogStatus> {
  const files = filesOf(host);
  const { settings, log } = host;
  const { log_config: configured, debug_logging: debug } = settings.configured;
  const { log_config: running } = settings.running;
  const file = files.status();
  const archives = await readable(files.archives());
  return {
    ...configured,
    rotation_label: rotationLabel(configured.rotation),
    restart_pending: settings.changesOf("log_config").restartPending,
    overridden_by: overriddenSettings(settings),
    async: {
      enabled: running.async_writing,
      mode: running.async_mode,
      buffer_size: running.async_buffer_size,
      buffer_depth: file?.waitingLines ?? 0,
      high_water: file?.highWater ?? 0,
      dropped_events: file?.droppedLines ?? 0,
      written_events: file?.writtenLines ?? 0,
    },
    log_dir: dirname(files.path),
    current_file: file === undefined ? null : { path: files.path, size_bytes: file.sizeBytes },
    archived_files: archives.map(({ name, path, sizeBytes, modifiedMs }) => ({
      name,
      path,
      size_bytes: sizeBytes,
      modified: new Date(modifiedMs).toISOString(),
    })),
    archived_count: archives.length,
    problem: file?.problem ?? null,
    verbosity: log.level,
    debug_logging: debug,
    traffic_events: { logged: traffic.logged, dropped: traffic.dropped, waiting: traffic.waiting },
  };
}

/** Changed settings that a flag or the environment overrides, by their names in the status. */
function overriddenSettings(settings: SliceHost["settings"]): OverriddenSettings {
  const debug = Object.entries(settings.changesOf("debug_logging").overriddenBy);
  return {
    ...settings.changesOf("log_config").overriddenBy,
    ...Object.fromEntries(debug.map(([name, by]) => [`debug_logging.${name}`, by])),
  };
}

/** The message after a change: settings that need a restart, and settings that are overridden at each start. */
function savedSentence({ restart_pending: pending, overridden_by: overridden }: LogStatus): string {
  const givenBy = (source: string): string[] => Object.keys(overridden).filter((name) => overridden[name] === source);
  const parts: readonly (readonly [words: string, names: readonly string[]])[] = [
    ["restart Weir for", pending],
    ["at each start a flag overrides", givenBy("flag")],
    ["at each start the environment overrides", givenBy("environment")],
  ];
  const named = parts.filter(([, names]) => names.length > 0);
  return ["Saved", ...named.map(([words, names]) => `${words} ${names.join(" and ")}`)].join("; ");
}

function rotationLabel(rotation: LogRotation): string {
  return rotation.mode === "size" ? `size (${rotation.size_mb} MB)` : rotation.mode;
}

/** The change in the form of the settings, without read-only fields. */
function settingsChange(change: LogChange, before: LogSettings): Parameters<SliceHost["settings"]["patch"]>[0] {
  const { enabled, max_files, max_file_size_mb, json_format, async_writing, async_mode, async_buffer_size } = change;
  const rotation = changedRotation(change, before);
  const own = {
    enabled,
    max_files,
    max_file_size_mb,
    json_format,
    async_writing,
    async_mode,
    async_buffer_size,
    rotation,
  };
  const { host_filter: hosts, ...debug } = change.debug_logging ?? {};
  return {
    log_config: given(own),
    debug_logging: given({ ...debug, ...(hosts === undefined ? {} : { host_filter: hosts ?? [] }) }),
  };
}

function given<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

/** A mode may be given with its size as a sibling, and the size alone if the mode is already `size`. */
function changedRotation({ rotation, size_mb: sizeMb }: LogChange, before: LogSettings): LogRotation | undefined {
  if (rotation === undefined && sizeMb === undefined) return undefined;
  if (typeof rotation === "object") {
    if (sizeMb === undefined || (rotation.mode === "size" && rotation.size_mb === sizeMb)) return rotation;
    throw validationError([{ path: "body/size_mb", message: "contradicts rotation" }]);
  }
  const mode = rotation ?? before.rotation.mode;
  if (mode !== "size") {
    if (sizeMb === undefined) return { mode };
    throw validationError([{ path: "body/size_mb", message: "is only allowed with rotation size" }]);
  }
  if (sizeMb === undefined) throw validationError([{ path: "body/size_mb", message: "is required for rotation size" }]);
  return { mode, size_mb: sizeMb };
}

/** Maps error paths of the settings to paths in the body, which has no section. */
function withShortPaths(act: () => void): void {
  try {
    act();
  } catch (error) {
    if (!(error instanceof ApiError) || error.details === undefined) throw error;
    throw validationError(
      error.details.map(({ path, message }) => ({ path: path.replace("body/log_config/", "body/"), message })),
    );
  }
}
