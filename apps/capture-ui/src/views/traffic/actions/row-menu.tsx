import type { TrafficSnapshot } from "@headworks/capture-contract";
import {
  Ban,
  CirclePause,
  CodeXml,
  Copy,
  Download,
  Drama,
  EyeOff,
  Filter,
  Focus,
  Gauge,
  GitCompareArrows,
  PanelRight,
  Play,
  Replace,
  ShieldOff,
  StickyNote,
  Trash2,
} from "lucide-react";
import { keysOf } from "../../../shell/actions.ts";
import { formatCount } from "../../../ui/format.ts";
import type { MenuEntry } from "../../../ui/menu.tsx";
import { queryValue } from "../query/effective-query.ts";
import {
  blockHost,
  compareEntries,
  copyApiCall,
  copySnippet,
  copyUrls,
  editAndReplay,
  focusHost,
  ignoreHost,
  makeBreakpoint,
  makeMock,
  makeMocks,
  makeRewrite,
  makeScript,
  passThroughHost,
  replayNow,
  ruleHost,
  saveForReplay,
  SNIPPETS,
  throttleHost,
} from "./entry-actions.ts";

export interface MenuActions {
  readonly open: (id: string) => void;
  readonly addFilter: (term: string) => void;
  readonly editNote: (id: string) => void;
  readonly remove: (ids: readonly string[]) => void;
  readonly exportHar: (ids: readonly string[]) => void;
}

function filterTerms(row: TrafficSnapshot): readonly { readonly label: string; readonly term: string }[] {
  const path = row.path.split("?")[0] ?? row.path;
  const terms = [
    { label: `Host ${row.host}`, term: `host:=${queryValue(row.host)}` },
    { label: `Path ${path}`, term: `path:=${queryValue(path)}` },
    { label: `Method ${row.method}`, term: `method:${queryValue(row.method)}` },
    { label: `Type ${row.resource_type}`, term: `type:${queryValue(row.resource_type)}` },
  ];
  const status = row.status_code;
  if (status !== null) terms.push({ label: `Status ${status}`, term: `status:${status}` });
  else terms.push({ label: `State ${row.state}`, term: `state:${row.state}` });
  return terms;
}

const ICON = 14;

function copyItems(row: TrafficSnapshot): readonly MenuEntry[] {
  return [
    {
      kind: "item",
      label: "Copy URL",
      icon: <Copy size={ICON} />,
      keys: keysOf("list.copyUrl"),
      onSelect: () => void copyUrls([row]),
    },
    {
      kind: "item",
      label: "Copy as cURL",
      keys: keysOf("list.copyCurl"),
      onSelect: () => void copySnippet(row.id, "curl"),
    },
    {
      kind: "submenu",
      label: "Copy as",
      items: [
        ...SNIPPETS.map(({ format, label }): MenuEntry => ({
          kind: "item",
          label,
          onSelect: () => void copySnippet(row.id, format),
        })),
        { kind: "separator" },
        { kind: "item", label: "API call", onSelect: () => void copyApiCall(row.id) },
      ],
    },
  ];
}

export function rowMenu(row: TrafficSnapshot, actions: MenuActions): readonly MenuEntry[] {
  const host = ruleHost(row);
  const terms = filterTerms(row);
  return [
    {
      kind: "item",
      label: "Open",
      icon: <PanelRight size={ICON} />,
      keys: keysOf("list.open"),
      onSelect: () => actions.open(row.id),
    },
    {
      kind: "item",
      label: row.has_note ? "Edit note…" : "Add note…",
      icon: <StickyNote size={ICON} />,
      keys: keysOf("note"),
      onSelect: () => actions.editNote(row.id),
    },
    { kind: "separator" },
    ...copyItems(row),
    { kind: "separator" },
    {
      kind: "submenu",
      label: "Show only",
      icon: <Filter size={ICON} />,
      items: terms.map(({ label, term }): MenuEntry => ({
        kind: "item",
        label,
        onSelect: () => actions.addFilter(term),
      })),
    },
    {
      kind: "submenu",
      label: "Exclude",
      icon: <EyeOff size={ICON} />,
      items: terms.map(({ label, term }): MenuEntry => ({
        kind: "item",
        label,
        onSelect: () => actions.addFilter(`-${term}`),
      })),
    },
    { kind: "separator" },
    ...ruleEntries(row, host),
    { kind: "separator" },
    { kind: "heading", label: host },
    { kind: "item", label: "Focus host", icon: <Focus size={ICON} />, onSelect: () => void focusHost(host) },
    { kind: "item", label: "Block host", icon: <Ban size={ICON} />, onSelect: () => void blockHost(host) },
    {
      kind: "item",
      label: "Don't record this host",
      icon: <EyeOff size={ICON} />,
      onSelect: () => void ignoreHost(host),
    },
    {
      kind: "item",
      label: "Don't decrypt this host",
      icon: <ShieldOff size={ICON} />,
      onSelect: () => void passThroughHost(host),
    },
    { kind: "separator" },
    {
      kind: "item",
      label: "Export as HAR",
      icon: <Download size={ICON} />,
      onSelect: () => actions.exportHar([row.id]),
    },
    {
      kind: "item",
      label: "Delete",
      icon: <Trash2 size={ICON} />,
      danger: true,
      keys: keysOf("list.delete"),
      onSelect: () => actions.remove([row.id]),
    },
  ];
}

/** Actions that create rules from an entry, and replay. Not available for tunnels, which have no request. */
function ruleEntries(row: TrafficSnapshot, host: string): readonly MenuEntry[] {
  const throttle: MenuEntry = {
    kind: "item",
    label: "Throttle host…",
    icon: <Gauge size={ICON} />,
    onSelect: () => throttleHost(host),
  };
  if (row.is_passthrough) return [throttle];
  return [
    {
      kind: "item",
      label: "Resend",
      icon: <Play size={ICON} />,
      keys: keysOf("replay.send"),
      onSelect: () => void replayNow(row.id),
    },
    {
      kind: "item",
      label: "Edit and resend…",
      keys: keysOf("replay.edit"),
      onSelect: () => void editAndReplay(row.id),
    },
    { kind: "separator" },
    {
      kind: "submenu",
      label: "Breakpoint",
      icon: <CirclePause size={ICON} />,
      items: [
        {
          kind: "item",
          label: "For similar requests…",
          keys: keysOf("rule.breakpoint"),
          onSelect: () => makeBreakpoint(row.id, "request"),
        },
        { kind: "item", label: "For their responses…", onSelect: () => makeBreakpoint(row.id, "response") },
        { kind: "item", label: "For both…", onSelect: () => makeBreakpoint(row.id, "both") },
      ],
    },
    {
      kind: "item",
      label: "Mock this response…",
      icon: <Drama size={ICON} />,
      keys: keysOf("rule.mock"),
      onSelect: () => makeMock(row.id),
    },
    {
      kind: "item",
      label: "Rewrite similar requests…",
      icon: <Replace size={ICON} />,
      onSelect: () => makeRewrite(row.id),
    },
    {
      kind: "item",
      label: "Script for this request…",
      icon: <CodeXml size={ICON} />,
      onSelect: () => makeScript(row.id),
    },
    throttle,
  ];
}

/** Actions on several entries; `rows` are the loaded ones. */
export function selectionMenu(
  ids: readonly string[],
  rows: readonly TrafficSnapshot[],
  actions: MenuActions,
): readonly MenuEntry[] {
  return [
    { kind: "heading", label: `${formatCount(ids.length)} requests` },
    {
      kind: "item",
      label: "Compare",
      icon: <GitCompareArrows size={ICON} />,
      keys: keysOf("diff"),
      disabled: ids.length !== 2,
      onSelect: () => compareEntries(ids),
    },
    { kind: "item", label: "Create mocks", icon: <Drama size={ICON} />, onSelect: () => void makeMocks(ids) },
    {
      kind: "item",
      label: "Save for replay",
      icon: <Play size={ICON} />,
      onSelect: () => void saveForReplay(ids),
    },
    { kind: "separator" },
    {
      kind: "item",
      label: "Copy URLs",
      icon: <Copy size={ICON} />,
      keys: keysOf("list.copyUrl"),
      onSelect: () => void copyUrls(rows),
    },
    { kind: "item", label: "Export as HAR", icon: <Download size={ICON} />, onSelect: () => actions.exportHar(ids) },
    { kind: "separator" },
    {
      kind: "item",
      label: "Delete",
      icon: <Trash2 size={ICON} />,
      danger: true,
      keys: keysOf("list.delete"),
      onSelect: () => actions.remove(ids),
    },
  ];
}
