import type { RequestData, ResponseData } from "@headworks/capture-contract";

/** The part of a message that its body's display needs. */
export type Message = Pick<
  RequestData | ResponseData,
  "headers_list" | "content_type" | "body_state" | "body_size" | "body_stored_size"
>;

export type Side = "request" | "response";

/** Whose bytes a viewer shows: those of a side, or of one message of a stream. */
export type BodyOwner = Side | "message";
