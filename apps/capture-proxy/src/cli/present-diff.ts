import type { BodyDiff, EntryDiff } from "@headworks/capture-contract";
import { utf8Reading } from "@headworks/http-fields";
import { durationText, sizeText } from "./present-values.ts";
import { visibleText } from "./terminal.ts";
import type { Terminal } from "./terminal.ts";

const MAX_VALUE_CHARACTERS = 200;
/** Limit of the output for people; `--json` has all. */
const MAX_CHANGES = 100;

/** A comparison for people: only the differences, line by line. */
export function presentDiff(diff: EntryDiff, terminal: Terminal): string {
  const lines = new Lines(terminal);
  lines.change("method", diff.method);
  lines.change("url", diff.url);
  lines.headers("request field", diff.request_headers.changed);
  lines.body("request body", diff.request_body);
  lines.change("status", diff.status);
  lines.change("failure", diff.failure);
  lines.headers("field", diff.response_headers.changed);
  lines.body("body", diff.response_body);
  const verdict = hasIgnored(diff) ? "Identical except for ignored differences" : "Identical";
  if (diff.same) lines.add(terminal.style("green", verdict));
  const ignored = [...diff.request_headers.ignored, ...diff.response_headers.ignored].map(({ name }) => name);
  if (ignored.length > 0) lines.add(terminal.style("dim", visibleText(`ignored: ${[...new Set(ignored)].join(", ")}`)));
  const { duration } = diff.timings;
  if (duration?.left !== null && duration?.right !== null && duration !== undefined) {
    lines.add(terminal.style("dim", `duration: ${durationText(duration.left)} → ${durationText(duration.right)}`));
  }
  return lines.text;
}

/** Whether there are ignored differences. */
function hasIgnored({ request_headers, response_headers, request_body, response_body }: EntryDiff): boolean {
  if (request_headers.ignored.length + response_headers.ignored.length > 0) return true;
  return [request_body, response_body].some(({ ignored_changes: changes = 0 }) => changes > 0);
}

class Lines {
  text = "";
  readonly #terminal: Terminal;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  add(line: string): void {
    this.text += `${line}\n`;
  }

  /** Writes a changed value. */
  change(name: string, change: EntryDiff["status"]): void {
    if (change === null) return;
    this.#removed(`${name}: ${change.left ?? "none"}`);
    this.#added(`${name}: ${change.right ?? "none"}`);
  }

  headers(kind: string, changes: EntryDiff["request_headers"]["changed"]): void {
    for (const { name, left, right } of changes) {
      for (const value of left ?? []) this.#removed(`${kind} ${name}: ${utf8Reading(value) ?? value}`);
      for (const value of right ?? []) this.#added(`${kind} ${name}: ${utf8Reading(value) ?? value}`);
    }
  }

  body(kind: string, diff: BodyDiff): void {
    if (diff.kind === "none" || diff.kind === "same") return;
    const ignored = diff.ignored_changes ?? 0;
    if (diff.kind === "json" && diff.changes?.length === 0) return;
    const sizes = `${sizeText(diff.left_size) || "none"} → ${sizeText(diff.right_size) || "none"}`;
    const note = ignored > 0 ? `, ${ignored} ignored` : "";
    this.add(this.#terminal.style("bold", `${kind} differs (${diff.kind}, ${sizes}${note})`));
    if (diff.reason !== undefined) this.add(visibleText(diff.reason));
    for (const change of diff.changes?.slice(0, MAX_CHANGES) ?? []) {
      if (change.op !== "add") this.#removed(`${change.path || "/"}: ${shortValue(change.left)}`);
      if (change.op !== "remove") this.#added(`${change.path || "/"}: ${shortValue(change.right)}`);
    }
    for (const part of diff.parts?.slice(0, MAX_CHANGES) ?? []) this.#part(part);
    if (diff.kind === "binary") {
      this.#removed(`sha256 ${diff.left_sha256 ?? "unknown"}`);
      this.#added(`sha256 ${diff.right_sha256 ?? "unknown"}`);
    }
    const most = Math.max(diff.changes?.length ?? 0, diff.parts?.length ?? 0);
    if (diff.truncated === true || most > MAX_CHANGES) this.add(this.#terminal.style("dim", "… more, see --json"));
  }

  #part({ kind, line_count: count, lines }: NonNullable<BodyDiff["parts"]>[number]): void {
    if (kind === "same" && lines.length === 0) {
      this.add(this.#terminal.style("dim", `  … ${count} ${count === 1 ? "line" : "lines"}`));
    }
    for (const line of lines) {
      const shown = short(line.replace(/\r$/u, ""));
      if (kind === "removed") this.#removed(shown);
      else if (kind === "added") this.#added(shown);
      else this.add(`  ${visibleText(shown)}`);
    }
  }

  #removed(text: string): void {
    this.add(this.#terminal.style("red", `- ${visibleText(text)}`));
  }

  #added(text: string): void {
    this.add(this.#terminal.style("green", `+ ${visibleText(text)}`));
  }
}

function shortValue(value: unknown): string {
  return short(JSON.stringify(value) ?? "");
}

function short(text: string): string {
  return text.length <= MAX_VALUE_CHARACTERS ? text : `${text.slice(0, MAX_VALUE_CHARACTERS)}…`;
}
