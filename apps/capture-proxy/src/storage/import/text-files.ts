import { closeSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { makeDirectorySync } from "@headworks/files";
import type { KeptText } from "@headworks/har";

/** Small, so that the garbage of a piece is collected soon. */
const PIECE_BYTES = 32_768;

/** Long strings of a document, each in a file while its entry is imported. */
export class TextFiles {
  readonly #folder: string;
  #open: TextFile[] = [];
  #nextFile = 1;

  /** The folder is created with the first string. The caller removes it, also after the thread was terminated. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** A file for a string, readable repeatedly until released. */
  keep(): KeptText {
    if (this.#nextFile === 1) makeDirectorySync(this.#folder);
    const file = new TextFile(join(this.#folder, `${this.#nextFile++}.text`));
    this.#open.push(file);
    return file;
  }

  /** Files opened since the last call, to be released with their entry. */
  taken(): { release(): void } {
    const files = this.#open;
    this.#open = [];
    return {
      release: () => {
        for (const file of files) file.remove();
      },
    };
  }
}

class TextFile implements KeptText {
  readonly #path: string;
  readonly #fd: number;

  constructor(path: string) {
    this.#path = path;
    this.#fd = openSync(path, "wx+", 0o600);
  }

  add(piece: Uint8Array): void {
    let from = 0;
    while (from < piece.length) from += writeSync(this.#fd, piece, from);
  }

  *pieces(): Generator<Uint8Array> {
    const buffer = Buffer.allocUnsafeSlow(PIECE_BYTES);
    let at = 0;
    for (;;) {
      const read = readSync(this.#fd, buffer, 0, PIECE_BYTES, at);
      if (read === 0) return;
      at += read;
      yield buffer.subarray(0, read);
    }
  }

  remove(): void {
    closeSync(this.#fd);
    rmSync(this.#path, { force: true });
  }
}
