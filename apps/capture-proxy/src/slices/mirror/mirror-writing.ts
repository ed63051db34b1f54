import { fstatSync, readSync, openSync, closeSync, writeSync } from "node:fs";
import { createContentDecoder, decodeContentSync, parseContentEncoding } from "@headworks/http-fields/content-coding";
import type { BodyHead, MirrorJob, MirrorResult, Side } from "./mirror-messages.ts";
import { mirrorPath, REQUEST_SUFFIX, SIDECAR_SUFFIX } from "./mirror-path.ts";
import { MirrorTree } from "./mirror-tree.ts";
import type { TemporaryFile } from "./mirror-tree.ts";

/** Bodies up to this size are decoded in memory, larger ones piece by piece. */
const AT_ONCE_BYTES = 4_194_304;
/** Larger results are decompression bombs; the body stays encoded. */
const MAX_DECODED_BYTES = 1_073_741_824;
const PIECE_BYTES = 1_048_576;
/** Limit of files whose newest response is recorded. */
const MAX_REMEMBERED = 20_000;

/** `raw`: the content coding could not be removed. */
type BodyForm = "decoded" | "raw";

interface WrittenBody {
  readonly file: TemporaryFile;
  readonly form: BodyForm;
  readonly bytes: number;
}

type BodyBytes = Uint8Array | TemporaryFile;

/** Writes the bodies of exchanges one after the other. Never throws: results hold the errors. */
export class MirrorWriting {
  #tree: MirrorTree | undefined;
  /** Number of the newest exchange per file: large bodies arrive late and must not replace newer ones. */
  readonly #newest = new Map<string, number>();
  #streamed: StreamedJob | undefined;

  /** Writes bodies that are in memory. */
  async whole(job: MirrorJob, bodies: Partial<Record<Side, Uint8Array | undefined>>): Promise<MirrorResult> {
    return await this.#attempt(job, async (tree) => await this.#write(tree, job, bodies));
  }

  /** Starts an exchange whose bodies come in pieces. */
  begin(job: MirrorJob): void {
    this.abandon();
    this.#streamed = { job, files: {}, error: undefined };
  }

  piece(side: Side, bytes: Uint8Array): void {
    const streamed = this.#streamed;
    if (streamed === undefined || streamed.error !== undefined) return;
    try {
      const tree = this.#treeOf(streamed.job.outputDir);
      if (streamed.tree !== undefined && streamed.tree !== tree) throw new Error("The output directory was replaced");
      streamed.tree = tree;
      writeAll((streamed.files[side] ??= tree.temporaryFile()).fd, bytes);
    } catch (error) {
      streamed.error = failureSentence(error, streamed.job.outputDir);
    }
  }

  async finish(): Promise<MirrorResult | undefined> {
    const streamed = this.#streamed;
    if (streamed === undefined) return undefined;
    const { job, files, error } = streamed;
    if (error !== undefined) {
      this.abandon();
      return { number: job.number, files: 0, bytes: 0, error };
    }
    const result = await this.#attempt(job, async (tree) => {
      if (streamed.tree !== undefined && streamed.tree !== tree) throw new Error("The output directory was replaced");
      return await this.#write(tree, job, files);
    });
    this.abandon();
    return result;
  }

  /** Discards the exchange that is being streamed. */
  abandon(): void {
    const streamed = this.#streamed;
    this.#streamed = undefined;
    for (const file of Object.values(streamed?.files ?? {})) discardQuietly(streamed?.tree, file);
  }

  close(): void {
    this.abandon();
    this.#tree?.close();
    this.#tree = undefined;
  }

  async #attempt(job: MirrorJob, write: (tree: MirrorTree) => Promise<MirrorResult>): Promise<MirrorResult> {
    try {
      return await write(this.#treeOf(job.outputDir));
    } catch (error) {
      return { number: job.number, files: 0, bytes: 0, error: failureSentence(error, job.outputDir) };
    }
  }

  #treeOf(outputDir: string): MirrorTree {
    if (this.#tree?.outputDir === outputDir && this.#tree.isCurrent()) return this.#tree;
    this.#tree?.close();
    this.#tree = undefined;
    this.#newest.clear();
    this.#tree = new MirrorTree(outputDir);
    return this.#tree;
  }

  async #write(
    tree: MirrorTree,
    job: MirrorJob,
    sources: Partial<Record<Side, BodyBytes | undefined>>,
  ): Promise<MirrorResult> {
    const path = mirrorPath(job.host, job.path, job.response?.contentType);
    const key = [job.port ?? "", ...path.directories, path.file].join("/");
    if ((this.#newest.get(key) ?? 0) > job.number) return { number: job.number, files: 0, bytes: 0, error: undefined };
    const open: TemporaryFile[] = [];
    try {
      const response = await this.#body(tree, job.response, sources.response, open);
      const request = await this.#body(tree, job.request, sources.request, open);
      const sidecar = tree.temporaryFile();
      open.push(sidecar);
      writeAll(sidecar.fd, Buffer.from(sidecarText(job, response, request)));
      const besides = [
        ...(request === undefined ? [] : [{ suffix: REQUEST_SUFFIX, file: request.file }]),
        { suffix: SIDECAR_SUFFIX, file: sidecar },
      ];
      const files = { body: response?.file, besides };
      tree.write(path, job.port, files);
      this.#remember(key, job.number);
      const written = [response, request].filter((body) => body !== undefined);
      const bytes = written.reduce((sum, body) => sum + body.bytes, 0);
      return { number: job.number, files: written.length, bytes, error: undefined };
    } catch (error) {
      for (const file of open) discardQuietly(tree, file);
      throw error;
    }
  }

  #remember(key: string, number: number): void {
    this.#newest.delete(key);
    this.#newest.set(key, number);
    const [oldest] = this.#newest.keys();
    if (this.#newest.size > MAX_REMEMBERED && oldest !== undefined) this.#newest.delete(oldest);
  }

  /** Writes the body in its final form to a new file. Created files are recorded in `open`. */
  async #body(
    tree: MirrorTree,
    head: BodyHead | undefined,
    source: BodyBytes | undefined,
    open: TemporaryFile[],
  ): Promise<WrittenBody | undefined> {
    if (head === undefined || source === undefined) return undefined;
    const isCoded = parseContentEncoding(head.contentEncoding).length > 0;
    if (isCoded) {
      const decoded = await decodedFile(tree, head, source, open);
      if (decoded !== undefined) return { file: decoded.file, form: "decoded", bytes: decoded.bytes };
    }
    const form = isCoded ? "raw" : "decoded";
    if (source instanceof Uint8Array) {
      const file = newFile(tree, open);
      writeAll(file.fd, source);
      return { file, form, bytes: source.length };
    }
    // The body already has its own file, which the caller hands over.
    return { file: source, form, bytes: fstatSync(source.fd).size };
  }
}

interface StreamedJob {
  readonly job: MirrorJob;
  readonly files: Partial<Record<Side, TemporaryFile>>;
  tree?: MirrorTree;
  error: string | undefined;
}

function newFile(tree: MirrorTree, open: TemporaryFile[]): TemporaryFile {
  const file = tree.temporaryFile();
  open.push(file);
  return file;
}

/** Undefined if the coding cannot be removed. Partial output of a cut body is kept. */
async function decodedFile(
  tree: MirrorTree,
  head: BodyHead,
  source: BodyBytes,
  open: TemporaryFile[],
): Promise<{ readonly file: TemporaryFile; readonly bytes: number } | undefined> {
  const file = newFile(tree, open);
  if (source instanceof Uint8Array && !isCut(head)) {
    const { bytes, stop } = decodeContentSync(source, head.contentEncoding, { maxBytes: AT_ONCE_BYTES });
    if (stop === undefined) {
      writeAll(file.fd, bytes);
      return { file, bytes: bytes.length };
    }
  }
  let bytes = 0;
  const deliver = (piece: Uint8Array): void => {
    bytes += piece.length;
    writeAll(file.fd, piece);
  };
  const decoder = createContentDecoder(head.contentEncoding, deliver, { maxBytes: MAX_DECODED_BYTES });
  for (const piece of piecesOf(source)) await decoder.write(piece);
  const { stop } = await decoder.end();
  if (stop === undefined || (stop === "truncated" && isCut(head))) return { file, bytes };
  open.splice(open.indexOf(file), 1);
  tree.discard(file);
  return undefined;
}

function* piecesOf(source: BodyBytes): Generator<Uint8Array> {
  if (source instanceof Uint8Array) {
    yield source;
    return;
  }
  const fd = openSync(source.path, "r");
  try {
    for (let start = 0; ;) {
      const piece = Buffer.allocUnsafeSlow(PIECE_BYTES);
      const read = readSync(fd, piece, 0, PIECE_BYTES, start);
      if (read === 0) return;
      start += read;
      yield piece.subarray(0, read);
    }
  } finally {
    closeSync(fd);
  }
}

function isCut(head: BodyHead): boolean {
  return head.isBroken || head.storedBytes < head.sizeBytes;
}

function sidecarText(job: MirrorJob, response: WrittenBody | undefined, request: WrittenBody | undefined): string {
  const facts = (head: BodyHead | undefined, body: WrittenBody | undefined) =>
    head === undefined || body === undefined
      ? null
      : {
          form: body.form,
          content_encoding: head.contentEncoding.length === 0 ? null : head.contentEncoding.join(", "),
          file_bytes: body.bytes,
          wire_bytes: head.sizeBytes,
          truncated: head.storedBytes < head.sizeBytes,
          complete: !isCut(head),
        };
  const truncated = job.response !== undefined && job.response.storedBytes < job.response.sizeBytes;
  const sidecar = {
    ...job.facts,
    truncated,
    body: facts(job.response, response),
    request_body: facts(job.request, request),
  };
  return `${JSON.stringify(sidecar, null, 2)}\n`;
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
}

function discardQuietly(tree: MirrorTree | undefined, file: TemporaryFile): void {
  try {
    tree?.discard(file);
  } catch {
    // Already moved or closed, or its directory is gone.
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EROFS: "the file system is read-only",
  EACCES: "this user may not write there",
  EPERM: "this user may not write there",
  ENOTDIR: "a part of the path is a file",
  EEXIST: "a file has its name",
  EMFILE: "too many files are open",
  ENAMETOOLONG: "its path is too long",
};

function failureSentence(error: unknown, outputDir: string): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return `Cannot write to ${outputDir}: ${(code === undefined ? undefined : REASONS[code]) ?? message}`;
}
