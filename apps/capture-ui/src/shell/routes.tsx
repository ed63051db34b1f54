import { Focus, Layers, Rows3, Settings, ShieldBan, Smartphone } from "lucide-react";
import { lazy } from "react";
import type { ComponentType } from "react";

/** A screen of the rail. Views load when they are first shown. */
export interface Route {
  readonly path: string;
  readonly label: string;
  /** Second key after G. */
  readonly goKey: string;
  readonly icon: ComponentType<{ readonly size?: number }>;
  readonly view: ComponentType;
  /** Fetches the view ahead, so that it appears without a fallback before it. */
  readonly preload: () => Promise<void>;
}

type ViewModule = { readonly default: ComponentType };

function loaded(load: () => Promise<ViewModule>): Pick<Route, "view" | "preload"> {
  const Later = lazy(load);
  let ready: ViewModule | undefined;
  // React holds back what follows a fallback for 300 ms, so what is there already is shown without one.
  const View = () => {
    const Shown = ready?.default ?? Later;
    return <Shown />;
  };
  return {
    view: View,
    preload: async () => {
      ready = await load();
    },
  };
}

export const ROUTES: readonly Route[] = [
  {
    path: "/traffic",
    label: "Traffic",
    goKey: "T",
    icon: Rows3,
    ...loaded(() => import("../views/traffic/traffic-view.tsx").then((module) => ({ default: module.TrafficView }))),
  },
  {
    path: "/sessions",
    label: "Sessions",
    goKey: "S",
    icon: Layers,
    ...loaded(() => import("../views/sessions/sessions-view.tsx").then((module) => ({ default: module.SessionsView }))),
  },
  {
    path: "/blocklist",
    label: "Block",
    goKey: "B",
    icon: ShieldBan,
    ...loaded(() =>
      import("../views/blocklist/blocklist-view.tsx").then((module) => ({ default: module.BlocklistView })),
    ),
  },
  {
    path: "/focus",
    label: "Focus",
    goKey: "F",
    icon: Focus,
    ...loaded(() => import("../views/focus/focus-view.tsx").then((module) => ({ default: module.FocusView }))),
  },
  {
    path: "/connect",
    label: "Set-up",
    goKey: "U",
    icon: Smartphone,
    ...loaded(() =>
      import("../views/first-run/first-run-view.tsx").then((module) => ({ default: module.FirstRunView })),
    ),
  },
  {
    path: "/settings",
    label: "Settings",
    goKey: ",",
    icon: Settings,
    ...loaded(() => import("../views/settings/settings-view.tsx").then((module) => ({ default: module.SettingsView }))),
  },
];

/** The route of a path, or undefined for an address that does not exist. */
export function routeOf(path: string): Route | undefined {
  return ROUTES.find((route) => path === route.path || path.startsWith(`${route.path}/`));
}
