import { randomBytes } from "node:crypto";
import { fieldValue, fieldValues } from "@headworks/http1";
import type { RawFields } from "@headworks/http1";
import type { Failure } from "#exchange/failure.ts";

const VIA_PSEUDONYM_BYTES = 8;

/** A Via member added by a Weir process. */
const OUR_MEMBER = /^[ \t]*1\.1 h[0-9a-f]{16}[ \t]*$/;

/** The request has already passed this process. */
export const LOOP_DETECTED: Failure = {
  stage: "policy",
  side: "internal",
  code: "LOOP",
  message: "The request was here before and came back by way of other proxies; it would go round for ever",
};

/**
 * A process's name in Via fields of requests to upstream proxies (RFC 9110, 7.6.3), which detects loops. Random, so
 * that it reveals neither product nor machine.
 */
export function newViaPseudonym(): string {
  return `h${randomBytes(VIA_PSEUDONYM_BYTES).toString("hex")}`;
}

/** The Via member for this name. */
export function viaMember(viaPseudonym: string): string {
  return `1.1 ${viaPseudonym}`;
}

/** The values of all Via fields; undefined if there are none. */
export function viaOf(fields: Readonly<RawFields>): readonly string[] | undefined {
  return fieldValue(fields, "via") === undefined ? undefined : fieldValues(fields, "via");
}

/** Whether a message has passed the process with this name. */
export function hasPassed(via: readonly string[] | undefined, viaPseudonym: string): boolean {
  return via?.some((value) => value.includes(viaPseudonym)) ?? false;
}

/** The members added by Weir processes, in order. */
export function ourMembers(via: readonly string[]): string[] {
  return via.flatMap((value) => value.split(",").filter(isOurs)).map((member) => member.trim());
}

/** Removes those members in place, so that an origin gets exactly the client's Via, or none. */
export function removeOurMembers(fields: RawFields): void {
  if (fieldValue(fields, "via") === undefined) return;
  for (let at = fields.length - 2; at >= 0; at -= 2) {
    const value = fields[at + 1] ?? "";
    if (fields[at]?.toLowerCase() !== "via" || !value.split(",").some(isOurs)) continue;
    const others = value.split(",").filter((member) => !isOurs(member));
    if (others.length === 0) fields.splice(at, 2);
    else fields[at + 1] = others.join(",").trim();
  }
}

function isOurs(member: string): boolean {
  return OUR_MEMBER.test(member);
}
