/**
 * All key bindings in one table, used by the cheat sheet, tooltips and the palette. Screens register handlers with
 * `useAction`; keys without a handler do nothing.
 */
export interface Binding {
  readonly action: ActionId;
  /** Chords such as `Ctrl+K`, or sequences such as `G T`. `Ctrl` also stands for ⌘ on a Mac. */
  readonly keys: readonly string[];
  readonly label: string;
  readonly group: "Everywhere" | "Screens" | "List" | "Request" | "Paused";
  /** Also active in text fields. */
  readonly whileTyping?: boolean;
}

export type ActionId =
  | "palette"
  | "cheatSheet"
  | "toggleCapture"
  | "theme"
  | "focusQuery"
  | "goTraffic"
  | "goStreams"
  | "goSessions"
  | "goBreakpoints"
  | "goMocks"
  | "goRewrites"
  | "goScripts"
  | "goBlocklist"
  | "goThrottle"
  | "goReplay"
  | "goFocus"
  | "goSetup"
  | "goSettings"
  | "list.next"
  | "list.previous"
  | "list.nextPage"
  | "list.previousPage"
  | "list.first"
  | "list.last"
  | "list.extendNext"
  | "list.extendPrevious"
  | "list.open"
  | "list.selectAll"
  | "list.delete"
  | "list.clear"
  | "list.copyCurl"
  | "list.copyUrl"
  | "list.focusOnly"
  | "close"
  | "save"
  | "note"
  | "detail.previousTab"
  | "detail.nextTab"
  | "detail.layout"
  | "rule.breakpoint"
  | "rule.mock"
  | "replay.send"
  | "replay.edit"
  | "diff"
  | "paused.send"
  | "paused.allow"
  | "paused.edit"
  | "paused.reject"
  | "paused.respond";

export const BINDINGS: readonly Binding[] = [
  { action: "palette", keys: ["Ctrl+K"], label: "Commands", group: "Everywhere", whileTyping: true },
  { action: "cheatSheet", keys: ["?"], label: "Keyboard shortcuts", group: "Everywhere" },
  { action: "toggleCapture", keys: ["Shift+R"], label: "Toggle recording", group: "Everywhere" },
  { action: "theme", keys: ["Ctrl+Shift+L"], label: "Next theme", group: "Everywhere", whileTyping: true },
  { action: "focusQuery", keys: ["/", "Ctrl+F"], label: "Filter", group: "Everywhere" },
  { action: "save", keys: ["Ctrl+S"], label: "Save", group: "Everywhere", whileTyping: true },
  { action: "close", keys: ["Escape"], label: "Close or clear selection", group: "Everywhere" },
  { action: "goTraffic", keys: ["G T"], label: "Traffic", group: "Screens" },
  { action: "goStreams", keys: ["G E"], label: "Streams", group: "Screens" },
  { action: "goSessions", keys: ["G S"], label: "Sessions", group: "Screens" },
  { action: "goBreakpoints", keys: ["G B"], label: "Breakpoints", group: "Screens" },
  { action: "goMocks", keys: ["G M"], label: "Mocks", group: "Screens" },
  { action: "goRewrites", keys: ["G W"], label: "Rewrites", group: "Screens" },
  { action: "goScripts", keys: ["G C"], label: "Scripts", group: "Screens" },
  { action: "goBlocklist", keys: ["G L"], label: "Block list", group: "Screens" },
  { action: "goThrottle", keys: ["G H"], label: "Throttle", group: "Screens" },
  { action: "goReplay", keys: ["G R"], label: "Replay", group: "Screens" },
  { action: "goFocus", keys: ["G F"], label: "Focus", group: "Screens" },
  { action: "goSetup", keys: ["G U"], label: "Setup", group: "Screens" },
  { action: "goSettings", keys: ["G ,"], label: "Settings", group: "Screens" },
  { action: "list.next", keys: ["J", "ArrowDown"], label: "Next request", group: "List" },
  { action: "list.previous", keys: ["K", "ArrowUp"], label: "Previous request", group: "List" },
  { action: "list.nextPage", keys: ["PageDown"], label: "Next page", group: "List" },
  { action: "list.previousPage", keys: ["PageUp"], label: "Previous page", group: "List" },
  { action: "list.first", keys: ["Home"], label: "First request", group: "List" },
  { action: "list.last", keys: ["End"], label: "Last request", group: "List" },
  {
    action: "list.extendNext",
    keys: ["Shift+ArrowDown", "Shift+J"],
    label: "Extend the selection down",
    group: "List",
  },
  {
    action: "list.extendPrevious",
    keys: ["Shift+ArrowUp", "Shift+K"],
    label: "Extend the selection up",
    group: "List",
  },
  { action: "list.open", keys: ["Enter"], label: "Open request", group: "List" },
  { action: "list.selectAll", keys: ["Ctrl+A"], label: "Select all", group: "List" },
  { action: "list.delete", keys: ["Delete"], label: "Delete selection", group: "List" },
  { action: "list.clear", keys: ["Ctrl+L"], label: "Clear list", group: "List" },
  { action: "list.focusOnly", keys: ["H"], label: "Focused hosts only", group: "List" },
  { action: "list.copyCurl", keys: ["Y"], label: "Copy as cURL", group: "Request" },
  { action: "list.copyUrl", keys: ["U"], label: "Copy URL", group: "Request" },
  { action: "note", keys: ["M"], label: "Edit note", group: "Request" },
  { action: "detail.previousTab", keys: ["["], label: "Previous tab", group: "Request" },
  { action: "detail.nextTab", keys: ["]"], label: "Next tab", group: "Request" },
  { action: "detail.layout", keys: ["L"], label: "Move details right or below", group: "Request" },
  { action: "rule.breakpoint", keys: ["B"], label: "New breakpoint for similar requests", group: "Request" },
  { action: "rule.mock", keys: ["O"], label: "New mock for similar requests", group: "Request" },
  { action: "replay.send", keys: ["R"], label: "Resend", group: "Request" },
  { action: "replay.edit", keys: ["E"], label: "Edit and resend", group: "Request" },
  { action: "diff", keys: ["D"], label: "Compare the two selected requests", group: "Request" },
  { action: "paused.send", keys: ["Ctrl+Enter"], label: "Send edited", group: "Paused", whileTyping: true },
  { action: "paused.allow", keys: ["A"], label: "Continue", group: "Paused" },
  { action: "paused.edit", keys: ["E"], label: "Edit", group: "Paused" },
  { action: "paused.reject", keys: ["X"], label: "Reject", group: "Paused" },
  { action: "paused.respond", keys: ["R"], label: "Respond", group: "Paused" },
];

export interface KeyPress {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  readonly shiftKey: boolean;
}

/** Names a key press as the table does; undefined for modifiers and unused keys. */
export function chordOf(press: KeyPress): string | undefined {
  if (press.altKey || ["Control", "Meta", "Shift", "Alt", "Dead", "Process", "Unidentified"].includes(press.key)) {
    return undefined;
  }
  const named = press.key === " " ? "Space" : press.key.length === 1 ? press.key.toUpperCase() : press.key;
  // Shift is part of typing "?", but a separate modifier for letters and named keys.
  const shift = press.shiftKey && (named.length > 1 || /[A-Z]/u.test(named)) ? "Shift+" : "";
  return `${press.ctrlKey || press.metaKey ? "Ctrl+" : ""}${shift}${named}`;
}

/** An action, the first key of a sequence, or nothing. */
export type KeyMeaning =
  | { readonly kind: "action"; readonly binding: Binding }
  | { readonly kind: "prefix"; readonly chord: string }
  | { readonly kind: "none" };

const BY_KEYS = Map.groupBy(
  BINDINGS.flatMap((binding) => binding.keys.map((keys) => ({ keys, binding }))),
  ({ keys }) => keys,
);
const PREFIXES = new Set([...BY_KEYS.keys()].flatMap((keys) => (keys.includes(" ") ? (keys.split(" ")[0] ?? []) : [])));

/**
 * Looks a chord up; `prefix` is the first key of a started sequence. Of actions that share keys on different screens,
 * the one for which `isUsable` returns true wins.
 */
export function meaningOf(
  chord: string,
  prefix: string | undefined,
  typing: boolean,
  isUsable: (action: ActionId) => boolean = () => true,
): KeyMeaning {
  const claims = BY_KEYS.get(prefix === undefined ? chord : `${prefix} ${chord}`) ?? BY_KEYS.get(chord) ?? [];
  const binding = (claims.find((claim) => isUsable(claim.binding.action)) ?? claims[0])?.binding;
  if (binding !== undefined && (!typing || binding.whileTyping === true)) return { kind: "action", binding };
  if (!typing && PREFIXES.has(chord)) return { kind: "prefix", chord };
  return { kind: "none" };
}

export function shownKeys(keys: string, mac: boolean): string {
  const names: Readonly<Record<string, string>> = mac
    ? { Ctrl: "⌘", Shift: "⇧", ArrowDown: "↓", ArrowUp: "↑", Escape: "Esc", Delete: "Del" }
    : { ArrowDown: "↓", ArrowUp: "↑", Escape: "Esc", Delete: "Del", PageDown: "Page down", PageUp: "Page up" };
  return keys
    .split(" ")
    .map((chord) =>
      chord
        .split("+")
        .map((part) => names[part] ?? part)
        .join(" "),
    )
    .join(" then ");
}
