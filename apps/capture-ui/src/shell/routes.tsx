import {
  CirclePause,
  CodeXml,
  Drama,
  Focus,
  Gauge,
  Layers,
  Radio,
  Repeat,
  Replace,
  Rows3,
  Settings,
  ShieldBan,
  Smartphone,
} from "lucide-react";
import type { ComponentType } from "react";
import { EmptyState, Spinner } from "../ui/states.tsx";
import { lazyView } from "./lazy-view.tsx";

/** A screen of the navigation rail. Views are loaded lazily. */
export interface Route {
  readonly path: string;
  readonly label: string;
  /** Second key after G. */
  readonly goKey: string;
  readonly icon: ComponentType<{ readonly size?: number }>;
  readonly view: ComponentType;
  /** Loads the view ahead, so that it appears without a fallback. */
  readonly preload: () => Promise<void>;
}

const waiting = <EmptyState icon={<Spinner />} title="" />;

function screen(load: () => Promise<ComponentType>): Pick<Route, "view" | "preload"> {
  const { View, preload } = lazyView(load, waiting);
  return { view: View, preload };
}

export const ROUTES: readonly Route[] = [
  {
    path: "/traffic",
    label: "Traffic",
    goKey: "T",
    icon: Rows3,
    ...screen(async () => (await import("../views/traffic/traffic-view.tsx")).TrafficView),
  },
  {
    path: "/streams",
    label: "Streams",
    goKey: "E",
    icon: Radio,
    ...screen(async () => (await import("../views/streams/streams-view.tsx")).StreamsView),
  },
  {
    path: "/breakpoints",
    label: "Break",
    goKey: "B",
    icon: CirclePause,
    ...screen(async () => (await import("../views/breakpoints/breakpoints-view.tsx")).BreakpointsView),
  },
  {
    path: "/mocks",
    label: "Mocks",
    goKey: "M",
    icon: Drama,
    ...screen(async () => (await import("../views/mocks/mocks-view.tsx")).MocksView),
  },
  {
    path: "/rewrites",
    label: "Rewrite",
    goKey: "W",
    icon: Replace,
    ...screen(async () => (await import("../views/rewrites/rewrites-view.tsx")).RewritesView),
  },
  {
    path: "/scripts",
    label: "Scripts",
    goKey: "C",
    icon: CodeXml,
    ...screen(async () => (await import("../views/scripts/scripts-view.tsx")).ScriptsView),
  },
  {
    path: "/blocklist",
    label: "Block",
    goKey: "L",
    icon: ShieldBan,
    ...screen(async () => (await import("../views/blocklist/blocklist-view.tsx")).BlocklistView),
  },
  {
    path: "/throttle",
    label: "Throttle",
    goKey: "H",
    icon: Gauge,
    ...screen(async () => (await import("../views/throttle/throttle-view.tsx")).ThrottleView),
  },
  {
    path: "/replay",
    label: "Replay",
    goKey: "R",
    icon: Repeat,
    ...screen(async () => (await import("../views/replay/replay-view.tsx")).ReplayView),
  },
  {
    path: "/sessions",
    label: "Sessions",
    goKey: "S",
    icon: Layers,
    ...screen(async () => (await import("../views/sessions/sessions-view.tsx")).SessionsView),
  },
  {
    path: "/focus",
    label: "Focus",
    goKey: "F",
    icon: Focus,
    ...screen(async () => (await import("../views/focus/focus-view.tsx")).FocusView),
  },
  {
    path: "/connect",
    label: "Setup",
    goKey: "U",
    icon: Smartphone,
    ...screen(async () => (await import("../views/first-run/first-run-view.tsx")).FirstRunView),
  },
  {
    path: "/settings",
    label: "Settings",
    goKey: ",",
    icon: Settings,
    ...screen(async () => (await import("../views/settings/settings-view.tsx")).SettingsView),
  },
];

export function routeOf(path: string): Route | undefined {
  return ROUTES.find((route) => path === route.path || path.startsWith(`${route.path}/`));
}
