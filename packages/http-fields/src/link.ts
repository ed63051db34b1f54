/** A Link value with one target (RFC 8288 section 3). The URI must not contain `<`, `>`, `"`, spaces and controls. */
export function formatLink(uri: string, relation: string): string {
  return `<${uri}>; rel="${relation}"`;
}
