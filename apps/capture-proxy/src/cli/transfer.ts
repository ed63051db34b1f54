import { createReadStream, createWriteStream } from "node:fs";
import { realpath, rename, rm, stat } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { type Readable, Transform, type TransformCallback } from "node:stream";
import { pipeline } from "node:stream/promises";
import { StringDecoder } from "node:string_decoder";
import { CommandFailure, EXIT, type Invocation } from "./invocation.ts";
import { sizeText } from "./table.ts";
import { type Terminal, visibleText } from "./terminal.ts";

/** Opens what an upload reads: a file, or standard input for `-`. Throws {@link CommandFailure} when it cannot be read. */
export async function openUpload(path: string, invocation: Invocation): Promise<Readable> {
  if (path === "-") return withProgress(invocation.stdin, undefined, invocation.stderr, "sent");
  try {
    const facts = await stat(path);
    if (facts.isDirectory()) throw new CommandFailure(EXIT.failure, `${path} is a directory, not a file`);
    return withProgress(createReadStream(path), facts.isFile() ? facts.size : undefined, invocation.stderr, "sent");
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw new CommandFailure(EXIT.failure, `Cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
}

const DAMAGED =
  "The output is incomplete: the body's content coding is damaged. Without --decoded the body is written as sent";
const NOT_CODED = "The body was written as sent: its content coding is unknown, or not the one that it names";
const CUT = "The output is incomplete: the body was cut when it was stored";

/**
 * Writes the bytes of a response to a file, which appears only when it is complete, to an existing device or named pipe,
 * or to standard output.
 */
export async function saveResponse(
  response: IncomingMessage,
  path: string | undefined,
  invocation: Invocation,
): Promise<void> {
  if (path === undefined || path === "-") await toStandardOutput(response, invocation);
  else await toFile(response, path, invocation);
  const isPartial = response.headers["x-body-partial"] === "true";
  if (response.headers["x-body-undecodable"] !== "true") {
    if (isPartial) invocation.stderr.write(`${CUT}\n`);
    return;
  }
  if (isPartial) throw new CommandFailure(EXIT.failure, DAMAGED);
  invocation.stderr.write(`${NOT_CODED}\n`);
}

async function toFile(response: IncomingMessage, path: string, invocation: Invocation): Promise<void> {
  const length = Number(response.headers["content-length"] ?? Number.NaN);
  const bytes = withProgress(response, Number.isNaN(length) ? undefined : length, invocation.stderr, "received");
  try {
    const target = await targetOf(path);
    if (target.isFile) await toWholeFile(bytes, target.path);
    else await pipeline(bytes, createWriteStream(target.path));
  } catch (error) {
    throw new CommandFailure(EXIT.failure, `Cannot write ${path}: ${(error as Error).message}`, { cause: error });
  }
}

/** The target of a path. A file must not replace a device or a pipe, which others may use. */
async function targetOf(path: string): Promise<{ readonly path: string; readonly isFile: boolean }> {
  try {
    const facts = await stat(path);
    // A link is kept; its target is written.
    return facts.isFile() ? { path: await realpath(path), isFile: true } : { path, isFile: false };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return { path, isFile: true };
  }
}

async function toWholeFile(bytes: Readable, path: string): Promise<void> {
  const partial = `${path}.${process.pid}.part`;
  try {
    await pipeline(bytes, createWriteStream(partial, { flags: "wx" }));
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

async function toStandardOutput(response: IncomingMessage, invocation: Invocation): Promise<void> {
  const { stdout } = invocation;
  try {
    if (stdout.isTty) await pipeline(response, new VisibleBytes(), stdout.stream, { end: false });
    else await pipeline(response, stdout.stream, { end: false });
  } catch (error) {
    // `weir export har | head` is a normal way to use it.
    if (invocation.outputGone.aborted || (error as { code?: string }).code === "EPIPE") return;
    throw new CommandFailure(EXIT.failure, `The response was interrupted: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** Captured bytes for a terminal: control characters become visible. */
class VisibleBytes extends Transform {
  readonly #decoder = new StringDecoder("utf8");

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    done(null, visibleText(this.#decoder.write(chunk).replaceAll("\r\n", "\n"), true));
  }

  override _flush(done: TransformCallback): void {
    done(null, `${visibleText(this.#decoder.end(), true)}\n`);
  }
}

/** How often a progress line is drawn. */
const REDRAW_MS = 100;

/** Adds a progress display on a terminal; otherwise the stream is unchanged. */
function withProgress(source: Readable, totalBytes: number | undefined, terminal: Terminal, verb: string): Readable {
  if (!terminal.isTty) return source;
  let bytes = 0;
  let drawnMs = Number.NEGATIVE_INFINITY;
  const draw = (): void => terminal.write(`\r\x1b[K${progressLine(bytes, totalBytes, terminal.columns, verb)}`);
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (performance.now() - drawnMs >= REDRAW_MS) {
        drawnMs = performance.now();
        draw();
      }
      done(null, chunk);
    },
  });
  counted.once("close", () => terminal.write("\r\x1b[K"));
  source.on("error", (error) => counted.destroy(error));
  return source.pipe(counted);
}

/** `[#####     ]  50 %  1.0 MiB of 2.0 MiB`, as wide as there is room. */
export function progressLine(bytes: number, totalBytes: number | undefined, columns: number, verb: string): string {
  if (totalBytes === undefined || totalBytes === 0) return `${sizeText(bytes)} ${verb}`;
  const share = Math.min(1, bytes / totalBytes);
  const text = `${String(Math.floor(share * 100)).padStart(3)} %  ${sizeText(bytes)} of ${sizeText(totalBytes)}`;
  const room = Math.min(40, columns - text.length - 5);
  if (room < 5) return text;
  const filled = Math.round(share * room);
  return `[${"#".repeat(filled)}${" ".repeat(room - filled)}] ${text}`;
}
