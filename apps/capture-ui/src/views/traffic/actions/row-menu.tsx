import type { TrafficSnapshot } from "@headworks/capture-contract";
import { Ban, Copy, Download, EyeOff, Filter, Focus, PanelRight, ShieldOff, StickyNote, Trash2 } from "lucide-react";
import { keysOf } from "../../../shell/actions.ts";
import { formatCount } from "../../../ui/format.ts";
import type { MenuEntry } from "../../../ui/menu.tsx";
import { queryValue } from "../query/effective-query.ts";
import {
  blockHost,
  copyApiCall,
  copySnippet,
  copyUrls,
  focusHost,
  ignoreHost,
  passThroughHost,
  ruleHost,
  SNIPPETS,
} from "./entry-actions.ts";

/** What the screen does for the menu. */
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

/** Everything that can be done with one entry. */
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
      label: "Leave out",
      icon: <EyeOff size={ICON} />,
      items: terms.map(({ label, term }): MenuEntry => ({
        kind: "item",
        label,
        onSelect: () => actions.addFilter(`-${term}`),
      })),
    },
    { kind: "separator" },
    { kind: "heading", label: host },
    { kind: "item", label: "Focus this host", icon: <Focus size={ICON} />, onSelect: () => void focusHost(host) },
    { kind: "item", label: "Block this host", icon: <Ban size={ICON} />, onSelect: () => void blockHost(host) },
    {
      kind: "item",
      label: "Stop recording this host",
      icon: <EyeOff size={ICON} />,
      onSelect: () => void ignoreHost(host),
    },
    {
      kind: "item",
      label: "Stop intercepting its TLS",
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

/** What can be done with several entries at once; `rows` are those that are loaded. */
export function selectionMenu(
  ids: readonly string[],
  rows: readonly TrafficSnapshot[],
  actions: MenuActions,
): readonly MenuEntry[] {
  return [
    { kind: "heading", label: `${formatCount(ids.length)} entries` },
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
