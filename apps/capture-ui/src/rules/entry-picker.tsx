import { useQuery } from "@tanstack/react-query";
import { api } from "../api.ts";
import { Select } from "../ui/field.tsx";
import { formatTimeOfDay } from "../ui/format.ts";

/** Number of recent entries offered. */
const OFFERED = 50;

/** Selects one of the newest captured entries, or keeps the given one. */
export function EntryPicker({
  value,
  onChange,
}: {
  readonly value: string | null;
  readonly onChange: (id: string) => void;
}) {
  const entries = useQuery({
    queryKey: ["entry", "newest", OFFERED],
    queryFn: async ({ signal }) => {
      const list = await api.traffic.listTraffic({ query: { limit: OFFERED, is_passthrough: "false" }, signal });
      return Array.isArray(list) ? list : list.entries;
    },
    staleTime: 2000,
  });
  const given = useQuery({
    queryKey: ["entry", value],
    queryFn: ({ signal }) =>
      api.traffic.getTraffic({ params: { id: value ?? "" }, query: { include_bodies: "false" }, signal }),
    enabled: value !== null,
  });
  const newest = entries.data ?? [];
  const list =
    given.data === undefined || newest.some((entry) => entry.id === value) ? newest : [given.data, ...newest];
  const options = list.map((entry) => ({
    value: entry.id,
    label: `${entry.request.method} ${entry.request.url} · ${entry.response?.status_code ?? entry.state} · ${formatTimeOfDay(Date.parse(entry.timestamp)).slice(0, 8)}`,
  }));
  const none = { value: "", label: options.length === 0 ? "No captured requests" : "Choose a request" };
  return (
    <Select
      aria-label="Captured request"
      value={value ?? ""}
      options={value === null ? [none, ...options] : options}
      disabled={options.length === 0}
      onChange={(id) => {
        if (id !== "") onChange(id);
      }}
    />
  );
}
