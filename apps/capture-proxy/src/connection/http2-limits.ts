/** Requests of one connection at a time; more are refused unseen (RFC 9113, 5.1.2). */
export const MAX_CONCURRENT_STREAMS = 128;
/** Fields beyond the limit that are read, to be counted in the response. */
export const COUNTED_FIELDS = 100;
/** Bytes of one answer that may wait for the client's window before its origin is held back. */
export const SEND_BUFFER_BYTES = 131_072;
/** How long a client may go on with a body after its answer is complete, before it is told to stop. */
export const SURPLUS_BODY_MS = 1000;
/** After the warning that a connection ends, for requests that are on their way. */
export const DRAIN_WARNING_MS = 1000;
