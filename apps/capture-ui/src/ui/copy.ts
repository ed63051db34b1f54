import { toast } from "./toast.tsx";

/** Copies text to the clipboard and reports success. `what` names it: `URL`, `cURL command`. */
export async function copyText(text: string, what: string): Promise<void> {
  const done = (await writeClipboard(text)) || copyThroughSelection(text);
  if (done) toast({ key: "copy", tone: "success", title: `${what} copied`, durationMs: 1800 });
  else toast({ key: "copy", tone: "error", title: "The browser blocked copying" });
}

async function writeClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** The clipboard API is unavailable on plain HTTP pages from another machine. */
function copyThroughSelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.style.position = "fixed";
  area.style.opacity = "0";
  const focused = document.activeElement;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return done;
}
