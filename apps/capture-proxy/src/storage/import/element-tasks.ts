import { MemberError } from "./checked-members.ts";
import { DocumentError, parseElement } from "./member-scanner.ts";
import type { TakeElement } from "./member-scanner.ts";
import type { TextFiles } from "../search/text-files.ts";

/** Takes an element in; throws {@link MemberError} when it is not as it must be. */
export type TakeValue = (value: unknown, index: number) => void | Promise<void>;

/** The elements that the bytes at hand completed, each taken in when its turn has come. */
export class ElementTasks {
  readonly #texts: TextFiles;
  #waiting: (() => Promise<void>)[] = [];

  /** Strings of an element in `texts` are there until it was taken in. */
  constructor(texts: TextFiles) {
    this.#texts = texts;
  }

  /** `what` names such an element in errors; `misplaced` says why none may stand here. */
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

/** What is wrong with a member, with the place of the element. */
export function placed(error: unknown, what: string, byteOffset: number): unknown {
  return error instanceof MemberError ? new DocumentError(`${what}: ${error.message}`, byteOffset) : error;
}
