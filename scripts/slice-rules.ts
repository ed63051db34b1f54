/** Names and paths: the data behind `check-slices.ts`. */

/** The roles a slice's file may have: `<slice>.<role>.ts`. A pure file has no role and is named for its noun. */
export const SLICE_ROLES: readonly string[] = [
  "slice",
  "compile",
  "check",
  "interceptor",
  "observer",
  "operations",
  "store",
  "task",
];

/** Names without meaning, which attract unrelated code. Forbidden for files and folders. */
export const DENIED_NAMES: readonly string[] = [
  "common",
  "core",
  "helper",
  "helpers",
  "lib",
  "manager",
  "misc",
  "shared",
  "util",
  "utils",
];

/** Also forbidden as a word of a longer name, such as `string-utils.ts`. */
export const DENIED_WORDS: readonly string[] = ["helper", "helpers", "manager", "misc", "util", "utils"];

/** An app made of slices, and the folders whose names must match its slices. */
export interface SlicedApp {
  readonly slices: string;
  readonly list: string;
  readonly contract: string;
  readonly views: string;
  /** First path segments that belong to a slice of another name. */
  readonly aliases: Readonly<Record<string, string>>;
  /** Whole paths below the name of one slice that belong to another. */
  readonly pathsElsewhere: Readonly<Record<string, string>>;
  /** Views without a slice, each with the reason. */
  readonly viewsWithoutSlice: Readonly<Record<string, string>>;
}

export const slicedApps: readonly SlicedApp[] = [
  {
    slices: "apps/capture-proxy/src/slices",
    list: "apps/capture-proxy/src/slices.ts",
    contract: "packages/capture-contract/src",
    views: "apps/capture-ui/src/views",
    aliases: { health: "metrics", performance: "metrics" },
    pathsElsewhere: { "/traffic/{id}/script-traces": "scripts" },
    viewsWithoutSlice: {
      detail: "one exchange of traffic, large enough for a folder of its own",
      "first-run": "shown while nothing has been captured; reads several slices",
      settings: "edits config under the name people look for",
    },
  },
];
