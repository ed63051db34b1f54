import { parseBodyJson } from "./body-json.ts";
import { foldUnicode } from "./fold.ts";
import type { QueryRecord } from "./record.ts";

/** The two halves of an exchange. */
export type Side = "request" | "response";

class SideMaterial {
  textKnown = false;
  text: string | undefined;
  folded: string | undefined;
  jsonKnown = false;
  json: unknown;
}

/**
 * One evaluation of one predicate: remembers decoded, folded and parsed bodies so that several terms about the same
 * body pay once. It is emptied after each record and therefore never keeps a body alive.
 */
export class Evaluation {
  #request: SideMaterial | undefined;
  #response: SideMaterial | undefined;

  /** Forgets the record. */
  reset(): void {
    this.#request = undefined;
    this.#response = undefined;
  }

  /** Decoded body text of one side. */
  text(record: QueryRecord, side: Side): string | undefined {
    const material = this.#of(side);
    if (!material.textKnown) {
      material.text = side === "request" ? record.requestText() : record.responseText();
      material.textKnown = true;
    }
    return material.text;
  }

  /** Body text in lower case. */
  folded(record: QueryRecord, side: Side): string | undefined {
    const material = this.#of(side);
    if (material.folded === undefined) {
      const text = this.text(record, side);
      if (text !== undefined) material.folded = foldUnicode(text);
    }
    return material.folded;
  }

  /** The parsed JSON body; undefined when it is not JSON. */
  json(record: QueryRecord, side: Side): unknown {
    const material = this.#of(side);
    if (!material.jsonKnown) {
      material.jsonKnown = true;
      const text = this.text(record, side);
      material.json = text === undefined ? undefined : parseBodyJson(text);
    }
    return material.json;
  }

  #of(side: Side): SideMaterial {
    if (side === "request") return (this.#request ??= new SideMaterial());
    return (this.#response ??= new SideMaterial());
  }
}
