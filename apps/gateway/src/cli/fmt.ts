import { formatDocument } from "#config/format-document.ts";
import { replaceFile } from "#config/watch-file.ts";
import { complain, openDocument, type Streams } from "./document-file.ts";
import { EXIT } from "./invocation.ts";

export interface FmtOptions {
  /** Only checks; resolves to 1 if the file is not formatted. */
  readonly check?: boolean;
}

/**
 * `sluice fmt FILE`: formats a configuration in place, atomically; comments are kept. With `-`, from standard input to
 * standard output. Resolves to 1 if it cannot be read or written.
 */
export async function fmt(name: string, options: FmtOptions, streams: Streams): Promise<number> {
  const file = await openDocument(name, streams);
  if (file === undefined) return EXIT.failure;
  const formatted = formatDocument(file.text);
  if (formatted === undefined) {
    const syntax = file.reading.issues.filter(({ code }) => code === "syntax");
    if (complain(name, syntax, streams) === 0) {
      streams.stderr.write(`sluice: ${name} cannot be written evenly without changing what it means\n`);
    }
    return EXIT.failure;
  }
  if (options.check === true) {
    if (formatted === file.text) return EXIT.ok;
    streams.stderr.write(`sluice: ${name} is not written evenly; run sluice fmt ${name}\n`);
    return EXIT.failure;
  }
  if (name === "-") streams.stdout.write(formatted);
  else if (formatted !== file.text) return await replace(name, formatted, streams);
  return EXIT.ok;
}

async function replace(name: string, text: string, streams: Streams): Promise<number> {
  try {
    await replaceFile(name, text);
    return EXIT.ok;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
    streams.stderr.write(`sluice: the file ${name} cannot be written (${code})\n`);
    return EXIT.failure;
  }
}
