import { parseHostPort } from "@headworks/host-patterns";

/** Reads the Host of requests; on most connections it is the same text each time, which is read once. */
export class KnownHost {
  #text: string | undefined;
  #hostPort: { readonly host: string; readonly port: number | undefined } | undefined;

  /** Undefined for a text that is no host, and for none. */
  of(text: string | undefined): { readonly host: string; readonly port: number | undefined } | undefined {
    if (text === undefined) return undefined;
    if (text !== this.#text) {
      const parsed = parseHostPort(text);
      this.#text = text;
      this.#hostPort = "issue" in parsed ? undefined : parsed;
    }
    return this.#hostPort;
  }
}
