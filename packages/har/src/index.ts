export { decodeHar, HarDecoder, type HarDecoderOptions, HarFormatError, type HarItem } from "./decode.ts";
export { encodeHar, harEntryTexts, harEpilogue, harPrologue } from "./encode.ts";
export { fromHarEntry, fromLargeHarEntry } from "./from-entry.ts";
export type * from "./har.ts";
export { type KeptText, LARGE_TEXT_BYTES, LargeText, LongStrings } from "./large-text.ts";
export { readHarEntry, type EntryReading } from "./read-entry.ts";
export { toHarEntry } from "./to-entry.ts";
