import type { Field } from "./fields.ts";
import { cookiePairs, fieldLines, fieldValues } from "./record-fields.ts";

/** What the header fields and bodies of both messages say. */
export const CONTENT_FIELDS: readonly Field[] = [
  {
    name: "header",
    phrase: "a header",
    keyed: "caseless",
    reads: "fields",
    value: {
      type: "text",
      literal: "contains",
      fold: "unicode",
      mayBeEmpty: true,
      read: (r, key) =>
        key === null
          ? [...fieldLines(r.requestFields()), ...fieldLines(r.responseFields())]
          : [...fieldValues(r.requestFields(), key), ...fieldValues(r.responseFields(), key)],
    },
  },
  {
    name: "req.header",
    phrase: "a request header",
    keyed: "caseless",
    reads: "fields",
    value: {
      type: "text",
      literal: "contains",
      fold: "unicode",
      mayBeEmpty: true,
      read: (r, key) => (key === null ? fieldLines(r.requestFields()) : fieldValues(r.requestFields(), key)),
    },
  },
  {
    name: "resp.header",
    phrase: "a response header",
    keyed: "caseless",
    reads: "fields",
    value: {
      type: "text",
      literal: "contains",
      fold: "unicode",
      mayBeEmpty: true,
      read: (r, key) => (key === null ? fieldLines(r.responseFields()) : fieldValues(r.responseFields(), key)),
    },
  },
  {
    name: "cookie",
    phrase: "a cookie",
    keyed: "exact",
    reads: "fields",
    value: {
      type: "text",
      literal: "contains",
      fold: "unicode",
      mayBeEmpty: true,
      read: (r, key) => cookiePairs(r.requestFields(), r.responseFields(), key),
    },
  },
  {
    name: "body",
    phrase: "a body",
    reads: "bothBodies",
    value: {
      type: "text",
      literal: "contains",
      fold: "unicode",
      floating: true,
      exists: (r) => r.hasRequestBody || r.hasResponseBody,
      read: (r, _key, e) => [...one(e.text(r, "request")), ...one(e.text(r, "response"))],
    },
  },
  {
    name: "req.body",
    phrase: "the request body",
    reads: "requestBody",
    value: {
      type: "text",
      literal: "contains",
      fold: "unicode",
      floating: true,
      exists: (r) => r.hasRequestBody,
      read: (r, _key, e) => one(e.text(r, "request")),
    },
  },
  {
    name: "resp.body",
    phrase: "the response body",
    reads: "responseBody",
    value: {
      type: "text",
      literal: "contains",
      fold: "unicode",
      floating: true,
      exists: (r) => r.hasResponseBody,
      read: (r, _key, e) => one(e.text(r, "response")),
    },
  },
];

function one(text: string | undefined): readonly string[] {
  return text === undefined ? [] : [text];
}
