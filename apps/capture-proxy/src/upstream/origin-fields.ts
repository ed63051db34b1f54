import { randomBytes } from "node:crypto";
import {
  connectionOptions,
  fieldValue,
  fieldValues,
  type Framing,
  type RawFields,
  removeField,
  setField,
  setFraming,
  withoutHopByHop,
} from "@headworks/http1";
import type { Failure } from "#exchange/failure.ts";

/** Trailers are forwarded, and so are the fields that announce and request them. */
const KEPT: ReadonlySet<string> = new Set(["connection", "te", "trailer"]);
const KEPT_IN_UPGRADES: ReadonlySet<string> = new Set(["connection", "te", "trailer", "upgrade"]);

/**
 * The request fields for an HTTP/1.1 origin: hop-by-hop fields removed, framing as parsed, Host from the target.
 * `Connection` keeps its position, because some origins check it, with the options of our own connection.
 * @param authority  value for Host; undefined keeps the existing one
 */
export function requestFields(
  fields: Readonly<RawFields>,
  framing: Framing,
  upgrade: string | undefined,
  authority: string | undefined,
): RawFields {
  const forwarded = withoutHopByHop(fields, { keep: upgrade === undefined ? KEPT : KEPT_IN_UPGRADES });
  settleConnection(forwarded, upgrade !== undefined);
  setFraming(forwarded, framing);
  if (authority !== undefined && fieldValue(forwarded, "host") !== authority) {
    if (fieldValue(forwarded, "host") === undefined) forwarded.unshift("Host", authority);
    else setField(forwarded, "Host", authority);
  }
  return forwarded;
}

function settleConnection(fields: RawFields, isUpgrade: boolean): void {
  const present = fieldValue(fields, "connection");
  if (present === undefined) return;
  const lower = present.toLowerCase();
  const isTrue = lower === "keep-alive" || lower === "close" || (isUpgrade && lower === "upgrade");
  if (isTrue && hasOneConnection(fields)) return;
  const kept = connectionOptions(fields).filter(
    (option) => option === "keep-alive" || option === "close" || option === "te" || (isUpgrade && option === "upgrade"),
  );
  if (kept.length === 0) removeField(fields, "connection");
  else setField(fields, "Connection", kept.join(", "));
}

function hasOneConnection(fields: Readonly<RawFields>): boolean {
  let count = 0;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (name.length === "connection".length && name.toLowerCase() === "connection") count += 1;
  }
  return count === 1;
}

const VIA_PSEUDONYM_BYTES = 8;

/** A Via member added by a Weir process. */
const OUR_MEMBER = /^[ \t]*1\.1 h[0-9a-f]{16}[ \t]*$/;

/** The request has already passed this process. */
export const LOOP_DETECTED: Failure = {
  stage: "policy",
  side: "internal",
  code: "LOOP",
  message: "The request came back to this proxy through other proxies; it would loop forever",
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
