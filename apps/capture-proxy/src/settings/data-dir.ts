import { isAbsolute, posix, resolve, win32 } from "node:path";

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
  const chosen = flag ?? environment["WEIR_DATA_DIR"] ?? environment["SERVICE_DATA_DIR"];
  if (chosen !== undefined && chosen !== "") return resolve(chosen);
  if (platform === "win32") {
    return win32.join(
      environment["LOCALAPPDATA"] ?? environment["APPDATA"] ?? win32.join(homeDir, "AppData", "Local"),
      "weir",
    );
  }
  if (platform === "darwin") return posix.join(homeDir, "Library", "Application Support", "weir");
  const xdg = environment["XDG_DATA_HOME"];
  // The XDG specification says to ignore relative paths.
  return posix.join(xdg !== undefined && isAbsolute(xdg) ? xdg : posix.join(homeDir, ".local", "share"), "weir");
}
