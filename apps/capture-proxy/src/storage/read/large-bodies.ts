import { LargeText } from "@headworks/har";
import { CheckedMembers, MemberError } from "../import/checked-members.ts";
import { base64Bytes } from "../import/imported-message.ts";
import type { FileTarget } from "../import/imported-content.ts";
import type { FoundBody } from "../import/imported-message.ts";
import { largeBase64 } from "../import/large-members.ts";

export type PieceTarget = Omit<FileTarget, "maxBodyBytes">;

interface OpenBody {
  readonly key: string;
  readonly file: number;
  sizeBytes: number;
}

/** Large bodies of a native document: their parts precede the entries and are assembled in files. */
export class LargeBodies {
  readonly #target: PieceTarget;
  readonly #finished = new Map<string, FoundBody>();
  #open: OpenBody | undefined;

  constructor(target: PieceTarget) {
    this.#target = target;
  }

  /** Appends a part. Throws {@link MemberError} for an invalid one. */
  async add(value: unknown): Promise<void> {
    const part = new CheckedMembers(value, "");
    const side = part.oneOf("side", ["request", "response"]) ?? part.refuse("side", "is missing");
    const key = `${side} ${part.optionalText("entry", 64) ?? part.refuse("entry", "is missing")}`;
    const data = part.raw("data");
    const pieces =
      data instanceof LargeText
        ? largeBase64(part, "data", data)
        : [base64Bytes(part.text("data")) ?? part.refuse("data", "is not base64")];
    if (this.#open?.key !== key) {
      this.finish();
      if (this.#finished.has(key)) throw new MemberError("the parts of a body do not stand together");
      this.#open = { key, file: this.#target.nextFile(), sizeBytes: 0 };
    }
    for (const bytes of pieces) {
      this.#open.sizeBytes += bytes.length;
      this.#target.piece(this.#open.file, bytes, false);
      await this.#target.hasRoom();
    }
  }

  /** Completes the current body. */
  finish(): void {
    if (this.#open === undefined) return;
    const { key, file, sizeBytes } = this.#open;
    this.#target.piece(file, new Uint8Array(0), true);
    this.#finished.set(key, { body: { file, sizeBytes }, totalBytes: sizeBytes });
    this.#open = undefined;
  }

  /** Takes the body of an entry once: entries cannot share a file. */
  take(member: string, entryId: string): FoundBody | undefined {
    const key = `${member} ${entryId}`;
    const found = this.#finished.get(key);
    this.#finished.delete(key);
    return found;
  }
}
