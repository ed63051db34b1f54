import { parseAcceptEncoding } from "@headworks/http-fields";
import { ownText } from "@headworks/http1";

/** Content codings that answers can be given, by their names on the wire. */
export type Coding = "gzip" | "br" | "zstd";

/** Distinct values that are remembered; browsers send a handful, whoever sends more only makes work for itself. */
const MAX_REMEMBERED = 256;
const MAX_REMEMBERED_LENGTH = 256;

/** Chooses a content coding by what a client accepts (RFC 9110, 12.5.3) among those that are offered, best first. */
export class CodingChoice {
  readonly #offered: readonly Coding[];
  readonly #known = new Map<string, Coding | undefined>();

  constructor(offered: readonly Coding[]) {
    this.#offered = offered;
  }

  /** The first offered coding that `accepted` does not refuse; undefined when there is none: the body stays as it is. */
  of(accepted: string): Coding | undefined {
    if (this.#known.has(accepted)) return this.#known.get(accepted);
    const coding = this.#chosen(accepted);
    if (accepted.length > MAX_REMEMBERED_LENGTH) return coding;
    if (this.#known.size >= MAX_REMEMBERED) this.#known.clear();
    this.#known.set(ownText(accepted), coding);
    return coding;
  }

  #chosen(accepted: string): Coding | undefined {
    const weights = parseAcceptEncoding(accepted);
    return this.#offered.find((coding) => (weights.get(coding) ?? weights.get("*") ?? 0) > 0);
  }
}
