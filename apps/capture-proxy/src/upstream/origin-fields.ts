import { connectionOptions, fieldValue, removeField, setField, setFraming, withoutHopByHop } from "@headworks/http1";
import type { Framing, RawFields } from "@headworks/http1";

/** Trailers are passed on, so what announces and asks for them is too. */
const KEPT: ReadonlySet<string> = new Set(["connection", "te", "trailer"]);
const KEPT_IN_UPGRADES: ReadonlySet<string> = new Set(["connection", "te", "trailer", "upgrade"]);

/**
 * The fields of a request as they go to an origin over HTTP/1.1: hop-by-hop fields left out, framing as it was read,
 * Host as the target says. `Connection` stays in its place with the options that are true of our own connection,
 * because some origins look at it.
 * @param authority  what Host must say, undefined to leave it as it is
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
