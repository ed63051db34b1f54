// Tested by ../../../../e2e/ui-screens.test.ts
const KEY = "weir.reloaded";
/** A page that was just loaded anew and still misses a part is broken in another way. */
const PATIENCE_MS = 15_000;

/** When a part of the app is gone because the service was updated, loads the page anew, once. */
export function reloadAfterUpdate(): void {
  addEventListener("vite:preloadError", (event) => {
    const before = Number(sessionStorage.getItem(KEY) ?? 0);
    if (Date.now() - before < PATIENCE_MS) return;
    sessionStorage.setItem(KEY, String(Date.now()));
    event.preventDefault();
    location.reload();
  });
}
