/** Levels as pino calls them, with the words that others use for them. */
const LEVELS: Readonly<Record<string, string>> = {
  off: "silent",
  none: "silent",
  silent: "silent",
  error: "error",
  warn: "warn",
  warning: "warn",
  info: "info",
  debug: "debug",
  trace: "trace",
};

/** The level set by `WEIR_LOG` or `RUST_LOG`. */
export interface Verbosity {
  /** A level of pino. */
  readonly level: string;
  /** Parts of the variable that say nothing: misspelt levels. */
  readonly unread: readonly string[];
  /** The variable they stand in. */
  readonly variable: string;
}

/**
 * Reads `WEIR_LOG`, or without it `RUST_LOG`: a level (`debug`), or a comma list of `target=level` in which targets of
 * Weir (`weir`, `weir::api`) win over the level without a target; a bare `weir` means everything. Targets of other programs
 * and filters behind a slash are passed over. Nothing usable gives the default; an empty variable asks for nothing.
 */
export function verbosity(environment: Readonly<Record<string, string | undefined>>, defaultLevel: string): Verbosity {
  const variable = ["WEIR_LOG", "RUST_LOG"].find((name) => (environment[name] ?? "").trim() !== "") ?? "RUST_LOG";
  let general: string | undefined;
  let own: string | undefined;
  const unread: string[] = [];
  // `weir[span{field=x}]=debug`: what stands in brackets narrows to something Weir does not have.
  const [directives = ""] = (environment[variable] ?? "").replaceAll(/\[[^\]]*\]/g, "").split("/");
  for (const directive of directives.split(",").map((text) => text.trim())) {
    if (directive === "") continue;
    const [left = "", right] = directive.toLowerCase().split("=");
    const target = left.trim();
    const level = LEVELS[(right ?? target).trim()];
    const isOwn = /^weir(?:$|[:._-])/.test(target);
    if (right === undefined && isOwn) own = "trace";
    else if (level === undefined) unread.push(directive);
    else if (right === undefined) general = level;
    else if (isOwn) own = level;
  }
  return { level: own ?? general ?? defaultLevel, unread, variable };
}
