/** A parsed outbound URL. */
export interface EgressUrl {
  readonly isSecure: boolean;
  /** In the URL standard's spelling; IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** For Host: the port only if it is not the scheme's default. */
  readonly authority: string;
  /** Path and query as written; never empty, no fragment. */
  readonly target: string;
  /** Origin and path for logs, since queries carry secrets. */
  readonly shown: string;
}

/**
 * Parses an absolute http or https URL. Stricter than the URL standard, which repairs errors: no white space, control
 * characters or backslashes, two slashes before the host, no user information, no port 0. Visible ASCII of path and
 * query is kept byte for byte, dot segments too. A fragment is dropped.
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
