/** Forbids scripts, loading and sending. */
const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; media-src data:; form-action 'none'; base-uri 'none'";

/**
 * The page that shows captured HTML in a sandboxed frame. The policy precedes all captured bytes, so it always applies;
 * the sandbox and the app's own policy are second and third lines of defence.
 */
export function previewDocument(html: string): string {
  const head = `<meta http-equiv="Content-Security-Policy" content="${POLICY}"><meta name="referrer" content="no-referrer"><meta http-equiv="x-dns-prefetch-control" content="off"><meta name="color-scheme" content="light">`;
  // Without its own doctype the page would be laid out in quirks mode.
  const doctype = /^\s*(?:<!--[\s\S]*?-->\s*)*<!doctype[^>]*>/iu.exec(html)?.[0] ?? "";
  return `${doctype}<html><head>${head}</head>${html.slice(doctype.length)}`;
}

/** Removes what the policy cannot forbid: preconnects, refreshes, base URLs, nested pages. */
export function withoutActiveParts(page: Document): void {
  for (const element of page.querySelectorAll(
    "script, iframe, frame, object, embed, portal, fencedframe, base, link, noscript, template",
  )) {
    if (element.localName !== "noscript") element.remove();
  }
  for (const element of page.querySelectorAll("meta[http-equiv]")) element.remove();
  for (const element of page.querySelectorAll("*")) {
    for (const { name, value } of Array.from(element.attributes)) {
      const attribute = name.toLowerCase();
      const isForeign =
        ["src", "srcset", "poster", "data", "href", "xlink:href"].includes(attribute) && !/^\s*data:/iu.test(value);
      if (
        isForeign ||
        attribute.startsWith("on") ||
        ["ping", "autofocus", "srcdoc", "action", "formaction", "background"].includes(attribute)
      ) {
        element.removeAttribute(name);
      }
    }
    // Links are removed, even to anchors in the page.
    if (element.localName === "a" || element.localName === "area") element.removeAttribute("href");
  }
}
