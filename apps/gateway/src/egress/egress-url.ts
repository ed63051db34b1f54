/** An address of ours to send to, taken apart once. */
export interface EgressUrl {
  readonly isSecure: boolean;
  /** In the URL standard's spelling; IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** For the Host field: the port only when it is not the scheme's own. */
  readonly authority: string;
  /** Path and query as they were written; never empty, no fragment. */
  readonly target: string;
  /** Origin and path: what logs may show, since queries carry secrets. */
  readonly shown: string;
}

/**
 * Reads an absolute http or https URL. Stricter than the URL standard, which repairs what it can: no white space,
 * control characters or backslashes, two slashes before the host, no user information, no port 0. The path and query
 * stay byte for byte where they are visible ASCII; dot segments stay too. A fragment is dropped.
 */
export function parseEgressUrl(text: string): EgressUrl | { readonly issue: string } {
  const parts = /^https?:\/\/([^/?#]*)([^#]*)/i.exec(text);
  if (parts === null) return { issue: "The URL must be absolute and begin with http:// or https://." };
  if (/[\s\\\x00-\x1f\x7f]/.test(text)) {
    return { issue: "The URL contains white space, a backslash or a control character." };
  }
  const [, written = "", rest = ""] = parts;
  if (written.includes("@")) return { issue: "The URL must not carry a user name or password; use a header." };
  if (written === "" || !URL.canParse(text)) return { issue: "The URL's host or port is not valid." };
  const url = new URL(text);
  if (url.port === "0") return { issue: "The URL's port must be a number from 1 to 65535." };
  const isSecure = url.protocol === "https:";
  const bare = url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
  const isPlain = /^[\x21-\x7e]*$/.test(rest);
  const asWritten = rest.startsWith("/") ? rest : `/${rest}`;
  const target = isPlain ? asWritten : `${url.pathname}${url.search}`;
  const mark = target.indexOf("?");
  return {
    isSecure,
    host: bare,
    port: url.port === "" ? (isSecure ? 443 : 80) : Number(url.port),
    authority: url.host,
    target,
    shown: `${url.origin}${mark === -1 ? target : target.slice(0, mark)}`,
  };
}
