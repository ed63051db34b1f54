import { useQuery } from "@tanstack/react-query";
import { ArrowDown, ArrowUp, Trash2 } from "lucide-react";
import { api } from "../api.ts";
import { IconButton } from "../ui/button.tsx";
import { Field, Select, TextInput } from "../ui/field.tsx";
import { formatTimeOfDay } from "../ui/format.ts";
import { Segmented } from "../ui/segmented.tsx";
import styles from "./rule-parts.module.css";

interface TextFieldProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly hint?: string | undefined;
  readonly error?: string | undefined;
}

export function NameField({ value, onChange, hint, error }: TextFieldProps) {
  return (
    <Field label="Name" hint={hint} error={error}>
      <TextInput maxLength={255} value={value} onChange={(event) => onChange(event.target.value)} />
    </Field>
  );
}

/** Priority of a rule, as typed. */
export function OrderField({ value, onChange, hint, error }: TextFieldProps) {
  return (
    <Field label="Priority" hint={hint} error={error}>
      <TextInput inputMode="numeric" maxLength={8} value={value} onChange={(event) => onChange(event.target.value)} />
    </Field>
  );
}

type Direction = "request" | "response" | "both";

/** The messages a rule applies to. `words` labels requests, responses and both. */
export function DirectionField({
  label,
  about,
  words,
  value,
  onChange,
}: {
  readonly label: string;
  /** Full question for screen readers. */
  readonly about: string;
  readonly words: Readonly<Record<Direction, string>>;
  readonly value: Direction;
  readonly onChange: (direction: Direction) => void;
}) {
  return (
    <div className={styles["option"]}>
      <span className={styles["optionLabel"]}>{label}</span>
      <Segmented
        label={about}
        value={value}
        options={[
          { value: "request", label: words.request },
          { value: "response", label: words.response },
          { value: "both", label: words.both },
        ]}
        onChange={onChange}
      />
    </div>
  );
}

/** Buttons that move an item up or down, or remove it; `remove` labels the last button. */
export function OrderButtons<Item>({
  items,
  index,
  remove,
  onChange,
}: {
  readonly items: readonly Item[];
  readonly index: number;
  readonly remove: string;
  readonly onChange: (items: readonly Item[]) => void;
}) {
  const move = (by: number): void => {
    const moved = items.slice(index, index + 1);
    onChange(items.toSpliced(index, 1).toSpliced(index + by, 0, ...moved));
  };
  return (
    <span>
      <IconButton label="Move up" icon={<ArrowUp size={14} />} disabled={index === 0} onClick={() => move(-1)} />
      <IconButton
        label="Move down"
        icon={<ArrowDown size={14} />}
        disabled={index === items.length - 1}
        onClick={() => move(1)}
      />
      <IconButton label={remove} icon={<Trash2 size={14} />} onClick={() => onChange(items.toSpliced(index, 1))} />
    </span>
  );
}

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
