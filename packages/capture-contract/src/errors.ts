/** Every error code of the API, its status and the message used when nothing more precise is known. */
export const ERRORS = {
  BAD_REQUEST: { status: 400, message: "The request is malformed" },
  VALIDATION_ERROR: { status: 400, message: "The request is not valid" },
  UNAUTHORIZED: { status: 401, message: "Credentials are required" },
  INVALID_API_KEY: { status: 401, message: "The API key is not valid" },
  FORBIDDEN: { status: 403, message: "This is not allowed" },
  CROSS_SITE: { status: 403, message: "The request comes from another site" },
  HOST_NOT_ALLOWED: { status: 421, message: "This host name is not one of this service" },
  CONFIRM_REQUIRED: { status: 403, message: "The confirmation header is missing" },
  NOT_FOUND: { status: 404, message: "There is no such resource" },
  METHOD_NOT_ALLOWED: { status: 405, message: "This resource does not have that method" },
  CONFLICT: { status: 409, message: "The state of the resource does not allow this" },
  PAYLOAD_TOO_LARGE: { status: 413, message: "The body is larger than allowed" },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, message: "The body's media type is not accepted here" },
  RANGE_NOT_SATISFIABLE: { status: 416, message: "The range is outside the body" },
  RATE_LIMITED: { status: 429, message: "Too many requests" },
  CANCELLED: { status: 499, message: "The caller disconnected" },
  INTERNAL: { status: 500, message: "Internal error; the log has the details" },
  NOT_IMPLEMENTED: { status: 501, message: "This feature is switched off" },
  SERVICE_UNAVAILABLE: { status: 503, message: "The service cannot do this now" },
  CORE_DATABASE: { status: 503, message: "The store does not respond" },
} as const satisfies Record<string, { status: number; message: string }>;

export type ErrorCode = keyof typeof ERRORS;
