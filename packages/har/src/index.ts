export { decodeHar, HarDecoder, HarFormatError, type HarDecoderOptions, type HarItem } from "./decode.ts";
export { encodeHar, harEntryTexts, harEpilogue, harPrologue } from "./encode.ts";
export type * from "./exchange.ts";
export { fromHarEntry, fromLargeHarEntry } from "./from-entry.ts";
export type * from "./har.ts";
export { LARGE_TEXT_BYTES, LargeText, LongStrings, type KeptText } from "./large-text.ts";
export { readHarEntry, type EntryReading } from "./read-entry.ts";
export { toHarEntry } from "./to-entry.ts";
