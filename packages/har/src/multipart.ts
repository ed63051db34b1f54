import type { HarParam } from "./har.ts";

/** Further parts are not listed; the body text is complete. */
const MAX_PARTS = 1000;
/** Bounds the patterns applied to the head of a part. */
const MAX_HEAD_LENGTH = 4096;
/** Longer values are omitted from the list of parts. */
const MAX_VALUE_LENGTH = 65_536;

export const MULTIPART_FORM = /^\s*multipart\/form-data\b/i;

/** A form rebuilt from its parameters. */
export interface RebuiltForm {
  readonly text: string;
  /** Includes the boundary. */
  readonly contentType: string;
  /** Parts without content: names of the field and of the file, if any. */
  readonly missingParts: readonly string[];
}

/**
 * Builds a multipart/form-data body with browser-style names. Uses the boundary of the media type unless it is missing
 * or occurs in a part. Parts without content, which most programs omit for files, are empty.
 */
export function multipartForm(params: readonly HarParam[], contentType: string): RebuiltForm {
  const named = boundaryOf(contentType);
  const mark = named !== undefined && canDivide(named, params) ? named : ownBoundary(params);
  const parts = params.map(({ name, value = "", fileName, contentType: type }) => {
    const file = fileName === undefined ? "" : `; filename="${quotable(fileName)}"`;
    const typeLine = type === undefined ? "" : `Content-Type: ${oneLine(type)}\r\n`;
    return `--${mark}\r\nContent-Disposition: form-data; name="${quotable(name)}"${file}\r\n${typeLine}\r\n${value}\r\n`;
  });
  const bare = contentType.replaceAll(BOUNDARY_PARAMETER, "").trimEnd();
  return {
    text: `${parts.join("")}--${mark}--\r\n`,
    contentType: mark === named ? contentType : `${bare}; boundary=${mark}`,
    missingParts: params.filter(({ value }) => value === undefined).map(shownPart),
  };
}

function shownPart({ name, fileName }: HarParam): string {
  return fileName === undefined ? JSON.stringify(name) : `${JSON.stringify(name)} (${JSON.stringify(fileName)})`;
}

const BOUNDARY_PARAMETER = /;[ \t]{0,8}boundary=(?:"[^"]*"?|[^;]*)/gi;

function boundaryOf(contentType: string): string | undefined {
  const boundary = /;\s{0,8}boundary=(?:"([^"]{1,200})"|([^\s;]{1,200}))/i.exec(contentType);
  return boundary?.[1] ?? boundary?.[2];
}

function canDivide(mark: string, params: readonly HarParam[]): boolean {
  return /^[\x20-\x7e]+$/.test(mark) && params.every(({ value = "" }) => !`\r\n${value}`.includes(`\r\n--${mark}`));
}

function ownBoundary(params: readonly HarParam[]): string {
  let mark = "----WeirFormBoundary";
  for (let count = 1; !canDivide(mark, params); count += 1) mark = `----WeirFormBoundary${count}`;
  return mark;
}

/** Escaping of quoted names in the HTML standard. */
function quotable(text: string): string {
  return text.replaceAll("\r", "%0D").replaceAll("\n", "%0A").replaceAll('"', "%22");
}

function oneLine(text: string): string {
  return text.replaceAll(/[\r\n]+/g, " ");
}

/** Parses multipart/form-data (RFC 7578) into HAR parameters. `text` has one character per byte. */
export function multipartParams(text: string, contentType: string): readonly HarParam[] {
  const mark = boundaryOf(contentType);
  if (mark === undefined) return [];
  const params: HarParam[] = [];
  let at = text.indexOf(`--${mark}`);
  while (at !== -1 && params.length < MAX_PARTS) {
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
  const head = text.slice(0, Math.min(blank === -1 ? text.length : blank, MAX_HEAD_LENGTH));
  const disposition = /^content-disposition:[ \t]*form-data(.*)$/im.exec(head)?.[1];
  const name = parameter(disposition, "name");
  if (name === undefined) return undefined;
  const fileName = parameter(disposition, "filename");
  const contentType = /^content-type:(.*)$/im.exec(head)?.[1]?.trim();
  const value = blank === -1 ? "" : text.slice(blank + 4);
  return {
    name,
    ...(fileName === undefined && value.length <= MAX_VALUE_LENGTH && { value: utf8(value) }),
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
