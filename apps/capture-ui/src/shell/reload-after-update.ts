const KEY = "weir.reloaded";
/** A page that was just loaded anew and still misses a part is broken in another way. */
const PATIENCE_MS = 15_000;

/**
 * When a part of the app is gone because the service was updated, loads the page anew, once. A part that could not be
 * fetched because the service is away is no reason: the page would go, and the browser has nothing to show in its place.
 */
export function reloadAfterUpdate(): void {
  addEventListener("vite:preloadError", () => void reloadIfUpdated());
}

async function reloadIfUpdated(): Promise<void> {
  const before = Number(sessionStorage.getItem(KEY) ?? 0);
  if (Date.now() - before < PATIENCE_MS || !(await servesAnotherApp())) return;
  sessionStorage.setItem(KEY, String(Date.now()));
  location.reload();
}

/** Whether the service is there and its page begins with another script than this one did. */
async function servesAnotherApp(): Promise<boolean> {
  const own = document.querySelector('script[type="module"][src]')?.getAttribute("src");
  if (own == null) return false;
  try {
    const response = await fetch("/", { cache: "no-store", headers: { accept: "text/html" } });
    return response.ok && !(await response.text()).includes(own);
  } catch {
    return false;
  }
}
