import { decodeContent, decodeText } from "@headworks/http-fields/content-coding";
import { fieldValue, fieldValues } from "@headworks/http1";
import type { Content } from "#exchange/exchange.ts";

/**
 * A body as text, content codings undone as far as that goes; undefined for a body that is not there whole or is too large.
 */
export async function textOfContent(
  content: Content,
  fields: readonly string[],
  maxBytes: number,
): Promise<string | undefined> {
  if (content.kind !== "complete" || content.bytes.length === 0) return undefined;
  const list = [...fields];
  const { bytes, stop } = await decodeContent(content.bytes, fieldValues(list, "content-encoding"), { maxBytes });
  if (stop === "limit") return undefined;
  return decodeText(bytes, fieldValue(list, "content-type")).text;
}
