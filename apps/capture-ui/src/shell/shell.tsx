import { useEffect, useState } from "react";
import { setPreferences, usePreferences } from "../preferences.ts";
import { DropZone } from "../transfer/drop-zone.tsx";
import { Button } from "../ui/button.tsx";
import { ConfirmHost } from "../ui/dialog.tsx";
import { EmptyState } from "../ui/states.tsx";
import { ToastHost } from "../ui/toast.tsx";
import { useAction, useKeyboard } from "./actions.ts";
import { toggleCapture, TopBar } from "./top-bar.tsx";
import { CatchErrors, lazyView } from "./lazy-view.tsx";
import { Link } from "./link.tsx";
import { useNotices } from "./notices.ts";
import { navigate, useLocation } from "./router.ts";
import { ROUTES, routeOf } from "./routes.tsx";
import styles from "./shell.module.css";
import { PausedBadge } from "./rule-switches.tsx";

const CommandPalette = lazyView(async () => (await import("./command-palette.tsx")).CommandPalette);
const CheatSheet = lazyView(async () => (await import("./cheat-sheet.tsx")).CheatSheet);
const THEMES = ["system", "light", "dark"] as const;

function nextTheme(): void {
  const now = THEMES.indexOf(usePreferences.getState().theme);
  setPreferences({ theme: THEMES[(now + 1) % THEMES.length] ?? "system" });
}

/** The frame around every screen: top bar, rail, dialogs, toasts, keyboard. */
export function Shell() {
  const { path } = useLocation();
  const route = routeOf(path);
  const [open, setOpen] = useState<"palette" | "cheatSheet" | null>(null);
  useEffect(() => {
    if (path === "/") navigate("/traffic", { replace: true });
  }, [path]);
  useEffect(() => {
    document.title = route === undefined ? "Weir" : `${route.label} · Weir`;
  }, [route]);
  useKeyboard();
  useNotices();
  useAction("palette", () => setOpen("palette"));
  useAction("cheatSheet", () => setOpen("cheatSheet"));
  useAction("toggleCapture", () => void toggleCapture());
  useAction("theme", nextTheme);
  useAction("goTraffic", () => navigate("/traffic"));
  useAction("goStreams", () => navigate("/streams"));
  useAction("goSessions", () => navigate("/sessions"));
  useAction("goBreakpoints", () => navigate("/breakpoints"));
  useAction("goMocks", () => navigate("/mocks"));
  useAction("goRewrites", () => navigate("/rewrites"));
  useAction("goScripts", () => navigate("/scripts"));
  useAction("goBlocklist", () => navigate("/blocklist"));
  useAction("goFocus", () => navigate("/focus"));
  useAction("goThrottle", () => navigate("/throttle"));
  useAction("goReplay", () => navigate("/replay"));
  useAction("goSetup", () => navigate("/connect"));
  useAction("goSettings", () => navigate("/settings"));
  return (
    <div className={styles["shell"]}>
      <a className={styles["skip"]} href="#main">
        Skip to content
      </a>
      <TopBar onCommands={() => setOpen("palette")} onKeys={() => setOpen("cheatSheet")} />
      <nav className={styles["rail"]} aria-label="Screens">
        {ROUTES.map(({ path: href, label, icon: Icon }) => (
          <Link
            key={href}
            href={href}
            className={styles["railLink"]}
            aria-current={route?.path === href ? "page" : undefined}
            // On a phone the rail scrolls.
            ref={route?.path === href ? showInBar : undefined}
          >
            <Icon size={18} />
            {label}
            {href === "/breakpoints" && <PausedBadge />}
          </Link>
        ))}
      </nav>
      <main id="main" tabIndex={-1} className={styles["main"]}>
        <CatchErrors key={route?.path ?? path}>
          {route === undefined ? <NoSuchPage empty={path === "/"} /> : <route.view />}
        </CatchErrors>
      </main>
      {open === "palette" && <CommandPalette.View onClose={() => setOpen(null)} />}
      {open === "cheatSheet" && <CheatSheet.View onClose={() => setOpen(null)} />}
      <DropZone />
      <ToastHost />
      <ConfirmHost />
    </div>
  );
}

function showInBar(link: HTMLAnchorElement | null): void {
  link?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function NoSuchPage({ empty }: { readonly empty: boolean }) {
  if (empty) return null;
  return (
    <EmptyState title="Page not found" actions={<Button onClick={() => navigate("/traffic")}>Go to Traffic</Button>} />
  );
}
