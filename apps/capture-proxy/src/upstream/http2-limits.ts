// Tested by ../../test/http2-hostile.test.ts
/** Bytes of one body that may wait here unread; what the other side does not take stops its sender there. */
export const STREAM_WINDOW_BYTES = 1_048_576;
/** The same for all bodies of a connection together; half as much again where they would block each other. */
export const CONNECTION_WINDOW_BYTES = 4_194_304;
/** What one connection may hold in its sessions' own memory; what is above is refused. */
export const SESSION_MB = 64;
/** A field section in bytes (RFC 9113, 6.5.2), as for HTTP/1.1. */
export const HEADER_LIST_BYTES = 65_536;
