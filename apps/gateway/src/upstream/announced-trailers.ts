import { isGrpc } from "@headworks/http-fields";
import { fieldValue, type RawFields } from "@headworks/http1";

/**
 * Whether a head lets expect trailers (RFC 9110, 6.6.2): they are announced, or what it begins is gRPC, whose status comes
 * in them and which announces nothing.
 */
export function announcesTrailers(fields: Readonly<RawFields>): boolean {
  if (fieldValue(fields, "trailer") !== undefined) return true;
  return isGrpc(fieldValue(fields, "content-type"));
}
