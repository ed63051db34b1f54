import { CONNECTION_FIELDS, isHttp2Te } from "@headworks/http1";

/** Characters of a lower-case field name (RFC 9113, 8.2.1). */
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
/** Characters that would break an HTTP/1 field value, or exceed one byte. */
const NOT_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

/** Whether every field of a section is valid for sending. */
export function isSendable(section: readonly string[]): boolean {
  for (let at = 0; at < section.length; at += 2) {
    const name = section[at] ?? "";
    if (!NAME.test(name) && !(name.startsWith(":") && NAME.test(name.slice(1)))) return false;
    if (NOT_IN_VALUE.test(section[at + 1] ?? "")) return false;
  }
  return true;
}

/** The first value of the named field. */
export function sectionField(section: readonly string[], name: string): string | undefined {
  for (let at = 0; at < section.length; at += 2) if (section[at] === name) return section[at + 1];
  return undefined;
}

/** Three digits (RFC 9110, 15). */
const STATUS = /^[1-9][0-9]{2}$/;
const BLANKS_AROUND = /^[\t ]|[\t ]$/;

/**
 * The problem with a response or trailer section (RFC 9113, 8.2 and 8.3.2); undefined if it is valid. Requests are
 * validated by the server's owner. White space around a server's values is removed in place, since many send it and
 * browsers and curl accept it.
 */
export function sectionProblem(section: string[], isTrailer: boolean, isOfServer: boolean): string | undefined {
  for (let at = 0; at < section.length; at += 2) {
    const name = section[at] ?? "";
    if (at === 0 && !isTrailer) {
      if (name !== ":status") return "no :status";
      const status = section[at + 1] ?? "";
      if (!STATUS.test(status)) return "a :status that is not valid";
      if (status === "101") return "the status 101, which HTTP/2 does not have";
      continue;
    }
    if (name.startsWith(":")) return "a pseudo-field out of its place";
    if (!NAME.test(name)) return "a field name that is not valid";
    const value = section[at + 1] ?? "";
    if (NOT_IN_VALUE.test(value)) return `a value of ${name} that is not valid`;
    if (BLANKS_AROUND.test(value)) {
      if (!isOfServer) return `blanks around a value of ${name}`;
      section[at + 1] = value.trim();
    }
    if (name === "te" && !isHttp2Te(section[at + 1] ?? "")) return "TE with more than trailers";
    if (CONNECTION_FIELDS.has(name)) return `the field ${name}, which has no place in HTTP/2`;
  }
  return undefined;
}
