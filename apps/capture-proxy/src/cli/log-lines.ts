import { styleText } from "node:util";
import { visibleText } from "./terminal.ts";

// Tested by ../../test/cli-serve-options.test.ts

const LEVELS: Readonly<Record<string, string>> = {
  off: "silent",
  none: "silent",
  error: "error",
  warn: "warn",
  warning: "warn",
  info: "info",
  debug: "debug",
  trace: "trace",
};

/**
 * The log level that `WEIR_LOG` or `RUST_LOG` asks for: a level (`debug`), or a comma list of `target=level` in which
 * `weir=…` wins over the level without a target. Nothing usable gives the default. An empty variable asks for nothing.
 */
export function logLevel(environment: Readonly<Record<string, string | undefined>>, defaultLevel: string): string {
  const text = [environment["WEIR_LOG"], environment["RUST_LOG"]].find((variable) => (variable ?? "") !== "") ?? "";
  let general: string | undefined;
  let own: string | undefined;
  for (const directive of text.split(",")) {
    const [target = "", level] = directive.trim().toLowerCase().split("=");
    if (level === undefined) general = LEVELS[target] ?? general;
    else if (target === "weir") own = LEVELS[level] ?? own;
  }
  return own ?? general ?? defaultLevel;
}

const NAMES: readonly (readonly [number, string, "red" | "yellow" | "green" | "cyan" | "dim"])[] = [
  [50, "ERROR", "red"],
  [40, "WARN ", "yellow"],
  [30, "INFO ", "green"],
  [20, "DEBUG", "cyan"],
  [0, "TRACE", "dim"],
];

/** One line for people from one JSON line of the logger; facts follow the message as `name=value`. */
export function textLogLine(json: string, hasColours: boolean): string {
  let record: Record<string, unknown>;
  try {
    record = JSON.parse(json) as Record<string, unknown>;
  } catch {
    return json;
  }
  const { level, time, msg, pid: _pid, hostname: _hostname, name: _name, err, ...facts } = record;
  const paint = (style: "red" | "yellow" | "green" | "cyan" | "dim", text: string): string =>
    hasColours ? styleText(style, text, { validateStream: false }) : text;
  const [, label, style] = NAMES.find(([floor]) => Number(level) >= floor) ?? [0, "TRACE", "dim" as const];
  const when = typeof time === "number" ? new Date(time).toISOString() : String(time);
  const pairs = Object.entries(facts).map(([key, value]) => `${key}=${factText(value)}`);
  const line = [
    paint("dim", when),
    paint(style, label),
    visibleText(String((msg as string | undefined) ?? "")),
    paint("dim", pairs.join(" ")),
  ];
  return `${line.join(" ").trimEnd()}${errorText(err)}\n`;
}

function factText(value: unknown): string {
  if (typeof value === "string" && /^[^\s"=]+$/.test(value)) return visibleText(value);
  return visibleText(JSON.stringify(value) ?? "undefined");
}

function errorText(error: unknown): string {
  if (typeof error !== "object" || error === null) return "";
  const { stack, message, type } = error as { stack?: string; message?: string; type?: string };
  return `\n    ${visibleText(stack ?? `${type ?? "Error"}: ${message ?? ""}`, true).replaceAll("\n", "\n    ")}`;
}
