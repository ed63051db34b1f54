import type { RequestData, ResponseData } from "@headworks/capture-contract";

/** The parts of a message needed to display its body. */
export type Message = Pick<
  RequestData | ResponseData,
  "headers_list" | "content_type" | "body_state" | "body_size" | "body_stored_size"
>;

export type Side = "request" | "response";

/** Owner of the bytes: one side, or one message of a stream. */
export type BodyOwner = Side | "message";
