import { CR, FIELD_VALUE, SEMICOLON, TCHAR } from "./characters.ts";

const EQUALS = 0x3d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Where in `*( ";" name [ "=" ( token / quoted-string ) ] )` (RFC 9112 section 7.1.1) the next byte stands. */
export type ExtensionPlace =
  | "name-start"
  | "name"
  | "value-start"
  | "value"
  | "quoted"
  | "escaped"
  | "behind-quoted"
  /** A lenient reader gave up on the grammar and skips to the end of the line. */
  | "anything"
  | "end"
  | "bad";

/** The place behind `byte`, for a byte that is not LF; `end` for the CR that ends the line. */
export function nextExtensionPlace(place: ExtensionPlace, byte: number): ExtensionPlace {
  switch (place) {
    case "name-start":
      return TCHAR[byte] === 1 ? "name" : "bad";
    case "name":
      if (TCHAR[byte] === 1) return "name";
      return byte === EQUALS ? "value-start" : behindMember(byte);
    case "value-start":
      if (byte === QUOTE) return "quoted";
      return TCHAR[byte] === 1 ? "value" : "bad";
    case "value":
      return TCHAR[byte] === 1 ? "value" : behindMember(byte);
    case "quoted":
      if (byte === QUOTE) return "behind-quoted";
      if (byte === BACKSLASH) return "escaped";
      return FIELD_VALUE[byte] === 1 ? "quoted" : "bad";
    case "escaped":
      return FIELD_VALUE[byte] === 1 ? "quoted" : "bad";
    case "behind-quoted":
      return behindMember(byte);
    case "anything":
      if (byte === CR) return "end";
      return FIELD_VALUE[byte] === 1 ? "anything" : "bad";
    default:
      return "bad";
  }
}

function behindMember(byte: number): ExtensionPlace {
  if (byte === SEMICOLON) return "name-start";
  return byte === CR ? "end" : "bad";
}
