import { STATUS_CODES } from "node:http";

/** Reason phrases by status, for answers made here. */
export const STATUS_TEXT: Readonly<Record<number, string>> = STATUS_CODES as Record<number, string>;
