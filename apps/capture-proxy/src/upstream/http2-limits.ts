// Tested by ../../test/http2-hostile.test.ts
/** A field section in bytes (RFC 9113, 6.5.2), as for HTTP/1.1. */
export const HEADER_LIST_BYTES = 65_536;
