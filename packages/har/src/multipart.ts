// Tested by exchange.test.ts
import type { HarParam } from "./har.ts";

/** More parts than this are not listed; the body's text has them all. */
const MOST_PARTS = 1000;
/** A part's own head is read this far; patterns then cannot be made slow by it. */
const LONGEST_HEAD = 4096;
/** Values beyond this are left out of the list of parts. */
const LONGEST_VALUE = 65_536;

/** Parts of a multipart/form-data body (RFC 7578) as HAR parameters. `text` holds one character per byte. */
export function multipartParams(text: string, contentType: string): readonly HarParam[] {
  const boundary = /;\s*boundary=(?:"([^"]{1,200})"|([^\s;]{1,200}))/i.exec(contentType);
  const mark = boundary?.[1] ?? boundary?.[2];
  if (mark === undefined) return [];
  const params: HarParam[] = [];
  let at = text.indexOf(`--${mark}`);
  while (at !== -1 && params.length < MOST_PARTS) {
    const start = at + mark.length + 2;
    if (text.startsWith("--", start)) break;
    const next = text.indexOf(`\r\n--${mark}`, start);
    const param = part(text.slice(start, next === -1 ? text.length : next));
    if (param !== undefined) params.push(param);
    at = next === -1 ? -1 : next + 2;
  }
  return params;
}

function part(text: string): HarParam | undefined {
  const blank = text.indexOf("\r\n\r\n");
  const head = text.slice(0, Math.min(blank === -1 ? text.length : blank, LONGEST_HEAD));
  const disposition = /^content-disposition:[ \t]*form-data(.*)$/im.exec(head)?.[1];
  const name = parameter(disposition, "name");
  if (name === undefined) return undefined;
  const fileName = parameter(disposition, "filename");
  const contentType = /^content-type:(.*)$/im.exec(head)?.[1]?.trim();
  const value = blank === -1 ? "" : text.slice(blank + 4);
  return {
    name,
    ...(fileName === undefined && value.length <= LONGEST_VALUE && { value: utf8(value) }),
    ...(fileName !== undefined && { fileName }),
    ...(contentType !== undefined && contentType !== "" && { contentType }),
  };
}

function parameter(disposition: string | undefined, name: string): string | undefined {
  const found = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;]+))`, "i").exec(disposition ?? "");
  const value = found?.[1]?.replace(/\\(["\\])/g, "$1") ?? found?.[2];
  return value === undefined ? undefined : utf8(value);
}

function utf8(text: string): string {
  return Buffer.from(text, "latin1").toString("utf8");
}
