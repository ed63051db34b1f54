import { isAbsolute, posix, resolve, win32 } from "node:path";
import { setVariable } from "./set-variable.ts";

export interface DataDirSources {
  /** Value of `--data-dir`. */
  readonly flag: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  readonly homeDir: string;
}

/**
 * Where this user's data lives: the flag, `WEIR_DATA_DIR` (or `SERVICE_DATA_DIR`), or the platform's place for such:
 * `$XDG_DATA_HOME/weir` or `~/.local/share/weir`, `~/Library/Application Support/weir`, `%LOCALAPPDATA%\weir`.
 */
export function resolveDataDir(sources: DataDirSources): string {
  const { flag, environment, platform, homeDir } = sources;
  const chosen = flag ?? setVariable(environment, "WEIR_DATA_DIR", "SERVICE_DATA_DIR")?.value;
  if (chosen !== undefined) return resolve(chosen);
  if (platform === "win32") {
    return win32.join(
      setVariable(environment, "LOCALAPPDATA", "APPDATA")?.value ?? win32.join(homeDir, "AppData", "Local"),
      "weir",
    );
  }
  if (platform === "darwin") return posix.join(homeDir, "Library", "Application Support", "weir");
  const xdg = environment["XDG_DATA_HOME"];
  // The XDG specification says to ignore relative paths.
  return posix.join(xdg !== undefined && isAbsolute(xdg) ? xdg : posix.join(homeDir, ".local", "share"), "weir");
}
