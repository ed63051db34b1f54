import type { TrafficSnapshot } from "@headworks/capture-contract";

export const NOTHING_SEEN: Seen = { first: null, trust: "waiting" };

/** Origins that the command tries by default. */
const DEFAULT_ORIGINS: readonly string[] = ["http://127.0.0.1:3001", "http://localhost:3001"];

export type StepStatus = "done" | "waiting" | "problem";

/** Setup progress derived from the traffic so far. */
export interface Seen {
  readonly first: TrafficSnapshot | null;
  readonly trust: StepStatus;
}

/** Adds one entry. A decrypted exchange proves trust; a refused handshake disproves it until the next decrypted one. */
export function withEntry(seen: Seen, entry: TrafficSnapshot): Seen {
  const isReadable = (entry.scheme === "https" || entry.scheme === "wss") && !entry.is_passthrough;
  const proves = isReadable && entry.source !== "import" && entry.status_code !== null;
  const refused = entry.failure_code === "CLIENT_CERTIFICATE_REFUSED" || entry.failure_code === "CLIENT_TLS";
  const trust = proves || seen.trust === "done" ? "done" : refused ? "problem" : seen.trust;
  const first = seen.first === null || seen.first.id === entry.id ? entry : seen.first;
  return { first, trust };
}

/** The platform shown first, guessed from the user agent. */
export function guessPlatform(userAgent: string, offered: readonly string[]): string | null {
  const guess = /iPhone|iPad/u.test(userAgent)
    ? "ios"
    : /Android/u.test(userAgent)
      ? "android"
      : /Windows/u.test(userAgent)
        ? "windows"
        : /Mac OS/u.test(userAgent)
          ? "macos"
          : "linux";
  return offered.find((id) => id === guess) ?? offered.find((id) => id.startsWith(guess)) ?? offered[0] ?? null;
}

/** A command that captures one program with the Weir this page was loaded from. */
export function runLine(command: string, program: string, origin: string = location.origin): string {
  const address = DEFAULT_ORIGINS.includes(origin) ? "" : ` --api-url ${origin}`;
  return `${command} run${address} -- ${program}`;
}

/** Commands that set the variables in a shell. Values are quoted, so that nothing in them is executed. */
export function exportLines(
  environment: readonly { readonly name: string; readonly value: string }[],
  shell: "sh" | "powershell" | "cmd",
): string {
  return environment
    .map(({ name, value }) => {
      if (shell === "sh") return `export ${name}='${value.replaceAll("'", String.raw`'\''`)}'`;
      if (shell === "powershell") return `$env:${name} = '${value.replaceAll("'", "''")}'`;
      return `set "${name}=${value.replaceAll(/["%]/gu, "")}"`;
    })
    .join("\n");
}
