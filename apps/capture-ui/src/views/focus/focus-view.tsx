import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Focus, X } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { focusQuery } from "../../queries.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { confirmAction } from "../../ui/dialog.tsx";
import { Field, TextInput } from "../../ui/field.tsx";
import { formatDateTime } from "../../ui/format.ts";
import { ListTable } from "../../ui/list-table.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { fieldErrors } from "../../rules/field-errors.ts";
import { Page } from "../../ui/page.tsx";
import { attempt } from "../../ui/toast.tsx";
import styles from "./focus.module.css";

/** Focused hosts: the traffic list can dim or hide all others. */
export function FocusView() {
  const client = useQueryClient();
  const hosts = useQuery(focusQuery);
  const refresh = () => client.invalidateQueries({ queryKey: ["focus"] });
  const remove = useMutation({
    mutationFn: (id: string) =>
      attempt("Could not remove the pattern", () => api.focus.removeFocusHost({ params: { id } })),
    onSettled: refresh,
  });
  const clear = async (): Promise<void> => {
    const sure = await confirmAction({
      title: "Remove all focus patterns?",
      text: "No hosts are highlighted afterwards.",
      action: "Remove all",
      danger: true,
    });
    if (!sure) return;
    await attempt("Could not remove the patterns", () => api.focus.clearFocusHosts({}));
    await refresh();
  };
  const list = hosts.data ?? [];
  return (
    <Page
      title="Focus"
      description="Highlights traffic of these hosts in the list and dims everything else. Nothing is blocked or removed."
      actions={
        list.length > 0 && (
          <Button variant="danger" onClick={() => void clear()}>
            Remove all
          </Button>
        )
      }
    >
      <AddPattern />
      <ListTable
        label="Focus patterns"
        list={hosts}
        empty={
          <EmptyState title="No focused hosts" icon={<Focus size={28} />}>
            Add a host above, or choose Focus from the menu of a request in Traffic.
          </EmptyState>
        }
        columns={[
          { title: "Pattern", cell: (host) => <code className={styles["pattern"]}>{host.pattern}</code> },
          {
            title: "Added",
            kind: "quiet",
            from: "medium",
            cell: (host) => formatDateTime(Date.parse(host.created_at)),
          },
          {
            title: "Remove",
            kind: "actions",
            cell: (host) => (
              <IconButton
                label={`Remove ${host.pattern}`}
                icon={<X size={15} />}
                onClick={() => remove.mutate(host.id)}
              />
            ),
          },
        ]}
      />
    </Page>
  );
}

function AddPattern() {
  const client = useQueryClient();
  const [pattern, setPattern] = useState("");
  const add = useMutation({
    mutationFn: (text: string) => api.focus.addFocusHost({ body: { pattern: text } }),
    onSuccess: async () => {
      setPattern("");
      await client.invalidateQueries({ queryKey: ["focus"] });
    },
  });
  const refused = fieldErrors(add.error, ["pattern"]);
  return (
    <form
      className={styles["add"]}
      onSubmit={(event) => {
        event.preventDefault();
        if (pattern.trim() !== "") add.mutate(pattern.trim());
      }}
    >
      <Field
        label="Host or pattern"
        hint="api.example.com, *.example.com, 10.0.0.0/8"
        error={refused.fields["pattern"] ?? refused.general}
      >
        <TextInput
          mono
          maxLength={255}
          placeholder="*.example.com"
          value={pattern}
          onChange={(event) => {
            setPattern(event.target.value);
            add.reset();
          }}
        />
      </Field>
      <Button type="submit" size="large" variant="primary" disabled={add.isPending}>
        Add
      </Button>
    </form>
  );
}
