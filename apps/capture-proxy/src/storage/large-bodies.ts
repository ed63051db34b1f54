// Tested by session-import.test.ts
import { CheckedMembers, MemberError } from "./checked-members.ts";
import { base64Bytes } from "./imported-message.ts";
import type { StoredFile } from "./imported-entry.ts";

/** What takes the pieces. */
export interface PieceTarget {
  nextFile(): number;
  piece(file: number, bytes: Uint8Array, isLast: boolean): void;
}

interface OpenBody {
  readonly key: string;
  readonly file: number;
  sizeBytes: number;
}

/** Large bodies of a native document: parts in a row, put together in files before the entries that they belong to come. */
export class LargeBodies {
  readonly #target: PieceTarget;
  readonly #finished = new Map<string, StoredFile>();
  #open: OpenBody | undefined;

  constructor(target: PieceTarget) {
    this.#target = target;
  }

  /** Takes a part. Throws {@link MemberError} for what is none. */
  add(value: unknown): void {
    const part = new CheckedMembers(value, "");
    const side = part.oneOf("side", ["request", "response"]) ?? part.refuse("side", "is missing");
    const key = `${side} ${part.optionalText("entry", 64) ?? part.refuse("entry", "is missing")}`;
    const bytes = base64Bytes(part.text("data")) ?? part.refuse("data", "is not base64");
    if (this.#open?.key !== key) {
      this.finish();
      if (this.#finished.has(key)) throw new MemberError("the parts of a body do not stand together");
      this.#open = { key, file: this.#target.nextFile(), sizeBytes: 0 };
    }
    this.#open.sizeBytes += bytes.length;
    this.#target.piece(this.#open.file, bytes, false);
  }

  /** No more parts of the current body come. */
  finish(): void {
    if (this.#open === undefined) return;
    const { key, file, sizeBytes } = this.#open;
    this.#target.piece(file, new Uint8Array(0), true);
    this.#finished.set(key, { file, sizeBytes });
    this.#open = undefined;
  }

  /** The body of an entry, once: two entries cannot share a file. */
  take(entryId: string, side: "request" | "response"): StoredFile | undefined {
    const key = `${side} ${entryId}`;
    const found = this.#finished.get(key);
    this.#finished.delete(key);
    return found;
  }
}
