// First, so that the styles of components come after the general ones.
import "./ui/tokens.css";
import "./ui/base.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { listenLive, startLive } from "./live.ts";
import { applyPreferences } from "./preferences.ts";
import { queryClient } from "./queries.ts";
import { askBeforeUnload } from "./rules/stored-draft.ts";
import { reloadAfterUpdate } from "./shell/lazy-view.tsx";
import { routeOf } from "./shell/routes.tsx";
import { Shell } from "./shell/shell.tsx";
import { TooltipProvider } from "./ui/tooltip.tsx";

const root = document.querySelector<HTMLElement>("#root");
if (root === null) throw new Error("The page has no #root");

reloadAfterUpdate();
applyPreferences(document.documentElement);
listenLive({
  changed: (topic) => void queryClient.invalidateQueries({ queryKey: [topic] }),
  resync: () => void queryClient.invalidateQueries(),
});
startLive();
askBeforeUnload();

function start(into: HTMLElement): void {
  createRoot(into).render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <TooltipProvider>
          <Shell />
        </TooltipProvider>
      </QueryClientProvider>
    </StrictMode>,
  );
}

// Fetched in parallel with the rest; if loading fails, the screen itself reports it.
const first = routeOf(location.pathname === "/" ? "/traffic" : location.pathname);
(first?.preload() ?? Promise.resolve()).then(
  () => start(root),
  () => start(root),
);
