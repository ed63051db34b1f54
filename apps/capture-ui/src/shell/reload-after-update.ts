const KEY = "weir.reloaded";
/** A chunk still missing after a recent reload has another cause. */
const PATIENCE_MS = 15_000;

/**
 * Reloads the page once when a chunk is missing because the service was updated. Does not reload while the service is
 * unreachable, when the browser would have nothing to show.
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

/** Whether the service is reachable and serves another entry script. */
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
