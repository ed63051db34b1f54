/** Further requests are refused as unprocessed (RFC 9113, 5.1.2). */
export const MAX_CONCURRENT_STREAMS = 128;
/** Fields beyond the limit that are still read, so that the error response can count them. */
export const COUNTED_FIELDS = 100;
/** Response bytes buffered for the client's window before the origin is paused. */
export const SEND_BUFFER_BYTES = 131_072;
/** How long a client may continue with a body after its response is complete before the stream is reset. */
export const SURPLUS_BODY_MS = 1000;
/** Between the first GOAWAY and the final one, for requests in flight. */
export const DRAIN_WARNING_MS = 1000;
