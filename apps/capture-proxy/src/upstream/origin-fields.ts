import { connectionOptions, fieldValue, removeField, setField, setFraming, withoutHopByHop } from "@headworks/http1";
import type { Framing, RawFields } from "@headworks/http1";

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
