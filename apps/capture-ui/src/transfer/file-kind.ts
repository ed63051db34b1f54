export type FileKind = "har" | "session";

/**
 * Distinguishes HAR documents from native session exports by name and prefix: a HAR is an object whose first levels
 * hold `log` with `version`, `creator` or `entries`; undefined for other files.
 */
export function fileKind(name: string, beginning: string): FileKind | undefined {
  const text = beginning.replace(/^\uFEFF/u, "").trimStart();
  if (!text.startsWith("{")) return undefined;
  if (/\.har$/iu.test(name)) return "har";
  if (/^\{\s*"(?:har|log)"\s*:\s*\{/u.test(text)) return "har";
  return /"log"\s*:\s*\{\s*"(?:version|creator|browser|pages|entries|comment)"/u.test(text) ? "har" : "session";
}

export function sessionName(fileName: string): string {
  const name = fileName
    .replace(/\.(?:har|json|session|weir)$/iu, "")
    .replace(/[\u0000-\u001f\u007f]/gu, "")
    .trim();
  return name === "" ? "Import" : name.slice(0, 255);
}
