import assert from "node:assert/strict";
import { resolve } from "node:path";
import { test } from "node:test";
import { resolveDataDir } from "./data-dir.ts";
import type { DataDirSources } from "./data-dir.ts";

test("data lives where the flag, the environment or the platform says, in this order", () => {
  const table: readonly (readonly [Partial<DataDirSources>, string])[] = [
    [{ flag: "/data/x", environment: { WEIR_DATA_DIR: "/y" } }, "/data/x"],
    [{ flag: "rel" }, resolve("rel")],
    [{ environment: { WEIR_DATA_DIR: "/y", SERVICE_DATA_DIR: "/z" } }, "/y"],
    [{ environment: { SERVICE_DATA_DIR: "/z" } }, "/z"],
    [{ environment: { WEIR_DATA_DIR: "" } }, "/home/u/.local/share/weir"],
    [{ environment: { WEIR_DATA_DIR: "", SERVICE_DATA_DIR: "/z" } }, "/z"],
    [{ environment: { XDG_DATA_HOME: "" } }, "/home/u/.local/share/weir"],
    [{}, "/home/u/.local/share/weir"],
    [{ environment: { XDG_DATA_HOME: "/xdg" } }, "/xdg/weir"],
    [{ environment: { XDG_DATA_HOME: "relative" } }, "/home/u/.local/share/weir"],
    [{ platform: "darwin" }, "/home/u/Library/Application Support/weir"],
    [{ platform: "win32", homeDir: "C:\\Users\\u", environment: { LOCALAPPDATA: "C:\\L" } }, "C:\\L\\weir"],
    [
      { platform: "win32", homeDir: "C:\\Users\\u", environment: { LOCALAPPDATA: "", APPDATA: "C:\\R" } },
      "C:\\R\\weir",
    ],
    [{ platform: "win32", homeDir: "C:\\Users\\u" }, "C:\\Users\\u\\AppData\\Local\\weir"],
  ];
  for (const [change, expected] of table) {
    const sources = { flag: undefined, environment: {}, platform: "linux", homeDir: "/home/u", ...change } as const;
    assert.equal(resolveDataDir(sources), expected, JSON.stringify(change));
  }
});
