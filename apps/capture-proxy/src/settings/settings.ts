import type { ConfigField, ConfigPatch, OverriddenSettings, Settings } from "@headworks/capture-contract";

/** Which settings of a section were changed and do not hold yet, or not for good; their names are without the section. */
export interface ChangesOfSection {
  /** Those that hold from the next start on. */
  readonly restartPending: string[];
  /** Those that something else than the file gives, which wins at each start. */
  readonly overriddenBy: OverriddenSettings;
}

/** The settings in force, their sources and their file. */
export interface SettingsStore {
  /** Values in force. Replaced whole on every change, never edited. Fields that apply after a restart keep their start value here. */
  readonly running: Settings;
  /** Values as configured: equals `running` but for fields that wait for a restart. */
  readonly configured: Settings;
  /** Checks everything, persists atomically, then publishes. Throws ApiError and changes nothing when one field is invalid or cannot be persisted. */
  patch(change: ConfigPatch): void;
  /** The dotted names of the settings that a change alters. Throws what `patch` would throw. */
  check(change: ConfigPatch): readonly string[];
  /**
   * Why the files of the mirror, or snapshots, must not be written to a directory, as the rest of a sentence about it: Weir
   * keeps its own there. Undefined where they may.
   */
  outputProblem(directory: string, of?: "mirror" | "snapshots"): string | undefined;
  /** Called after each published change. Gives the function that stops it. */
  onChange(listener: (running: Settings, previous: Settings) => void): () => void;
  /** Each field with source, default, value and whether a restart is pending; secrets redacted. */
  describe(): ConfigField[];
  /** The text of `describe` for the changes in a section. */
  changesOf(section: "auto_save" | "debug_logging" | "log_config"): ChangesOfSection;
  /** Address to give to devices, worked out from the settings and this machine's interfaces. */
  shownHost(): string;
}

/** Why the service cannot start, as one sentence for the person who started it. */
export class StartupError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "StartupError";
  }
}
