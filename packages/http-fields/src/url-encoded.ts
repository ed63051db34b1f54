/** One piece between `&`s, raw and decoded. */
export interface QueryParameter {
  rawName: string;
  /** Undefined when there was no `=`. */
  rawValue: string | undefined;
  /** Decoded: `+` is a space, percent sequences are UTF-8 octets; broken ones stay as they are. */
  name: string;
  /** Decoded; empty when there was no `=`. */
  value: string;
}

/**
 * The parameters of a query string (without a leading `?`) or of an `application/x-www-form-urlencoded` body, in
 * order with duplicates; empty pieces are skipped.
 */
export function parseUrlEncoded(text: string): QueryParameter[] {
  const bare = text.startsWith("?") ? text.slice(1) : text;
  const parameters: QueryParameter[] = [];
  for (const piece of bare.split("&")) {
    if (piece === "") continue;
    const equals = piece.indexOf("=");
    const rawName = equals === -1 ? piece : piece.slice(0, equals);
    const rawValue = equals === -1 ? undefined : piece.slice(equals + 1);
    parameters.push({ rawName, rawValue, name: formDecoded(rawName), value: formDecoded(rawValue ?? "") });
  }
  return parameters;
}

/** The parameters of the query of a URL or path. */
export function parseQuery(url: string): QueryParameter[] {
  const hash = url.indexOf("#");
  const bare = hash === -1 ? url : url.slice(0, hash);
  const mark = bare.indexOf("?");
  return mark === -1 ? [] : parseUrlEncoded(bare.slice(mark + 1));
}

/** Names and values as `application/x-www-form-urlencoded`. */
export const formatUrlEncoded = (parameters: readonly { name: string; value: string }[]): string =>
  new URLSearchParams(parameters.map(({ name, value }): [string, string] => [name, value])).toString();

const formDecoded = (text: string): string => percentDecoded(text.replaceAll("+", " "));

/** Decodes percent sequences as UTF-8; broken sequences stay, invalid UTF-8 becomes U+FFFD. Never throws. */
export function percentDecoded(text: string): string {
  return text.replace(/(?:%[0-9a-fA-F]{2})+/g, (run) => {
    const octets = new Uint8Array(run.length / 3);
    for (let index = 0; index < octets.length; index += 1) {
      octets[index] = Number.parseInt(run.slice(index * 3 + 1, index * 3 + 3), 16);
    }
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(octets);
  });
}
