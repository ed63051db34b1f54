import { MemberError } from "./checked-members.ts";
import { DocumentError, parseElement } from "./member-scanner.ts";
import type { TakeElement } from "./member-scanner.ts";
import type { TextFiles } from "../search/text-files.ts";

/** Imports an element; throws {@link MemberError} for an invalid one. */
export type TakeValue = (value: unknown, index: number) => void | Promise<void>;

/** Elements completed by the current bytes, imported in order. */
export class ElementTasks {
  readonly #texts: TextFiles;
  #waiting: (() => Promise<void>)[] = [];

  /** Strings in `texts` live until their element is imported. */
  constructor(texts: TextFiles) {
    this.#texts = texts;
  }

  /** `what` names the element in errors; `misplaced` returns why it may not occur here. */
  later(what: string, take: TakeValue, misplaced: () => string | undefined = () => undefined): TakeElement {
    return (element, index, byteOffset) => {
      const why = misplaced();
      if (why !== undefined) throw new DocumentError(why, byteOffset);
      const value = parseElement(element, byteOffset);
      const kept = this.#texts.taken();
      this.#waiting.push(async () => {
        try {
          await take(value, index);
        } catch (error) {
          throw placed(error, `${what} ${index}`, byteOffset);
        }
        kept.release();
      });
    };
  }

  async run(): Promise<void> {
    const tasks = this.#waiting;
    this.#waiting = [];
    for (const task of tasks) await task();
  }
}

/** Adds the element's position to a member error. */
export function placed(error: unknown, what: string, byteOffset: number): unknown {
  return error instanceof MemberError ? new DocumentError(`${what}: ${error.message}`, byteOffset) : error;
}
