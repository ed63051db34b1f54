import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Focus, X } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { focusQuery } from "../../queries.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { confirmAction } from "../../ui/dialog.tsx";
import { Field, TextInput } from "../../ui/field.tsx";
import { formatDateTime } from "../../ui/format.ts";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { Table } from "../../ui/table.tsx";
import { fieldErrors } from "../settings/field-errors.ts";
import { Page } from "../settings/page.tsx";
import { attempt } from "../traffic/actions/entry-actions.ts";
import styles from "./focus.module.css";

/** Hosts that matter now: the traffic list can dim or hide the rest. */
export function FocusView() {
  const client = useQueryClient();
  const hosts = useQuery(focusQuery);
  const refresh = () => client.invalidateQueries({ queryKey: ["focus"] });
  const remove = useMutation({
    mutationFn: (id: string) =>
      attempt("The pattern was not removed", () => api.focus.removeFocusHost({ params: { id } })),
    onSettled: refresh,
  });
  const clear = async (): Promise<void> => {
    const sure = await confirmAction({
      title: "Remove all focus patterns?",
      text: "All hosts are then shown alike.",
      action: "Remove all",
      danger: true,
    });
    if (!sure) return;
    await attempt("The patterns were not removed", () => api.focus.clearFocusHosts({}));
    await refresh();
  };
  const list = hosts.data ?? [];
  return (
    <Page
      title="Focus"
      description="Traffic of these hosts stands out in the list; everything else steps back. Nothing is blocked or lost."
      actions={
        list.length > 0 && (
          <Button variant="danger" onClick={() => void clear()}>
            Remove all
          </Button>
        )
      }
    >
      <AddPattern />
      {hosts.error !== null && (
        <ErrorState title="The patterns cannot be loaded" error={hosts.error} onRetry={() => void hosts.refetch()} />
      )}
      {hosts.isPending && <EmptyState title="Loading the patterns" icon={<Spinner />} />}
      {hosts.isSuccess && list.length === 0 && (
        <EmptyState title="No host is in focus" icon={<Focus size={28} />}>
          Add a host above, or choose Focus from the menu of a row in the traffic list.
        </EmptyState>
      )}
      {list.length > 0 && (
        <Table label="Focus patterns">
          <thead>
            <tr>
              <th scope="col">Pattern</th>
              <th scope="col" className={styles["added"]}>
                Added
              </th>
              <th scope="col">
                <span className="visually-hidden">Remove</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {list.map((host) => (
              <tr key={host.id}>
                <td>
                  <code className={styles["pattern"]}>{host.pattern}</code>
                </td>
                <td className={styles["added"]}>{formatDateTime(Date.parse(host.created_at))}</td>
                <td className={styles["action"]}>
                  <IconButton
                    label={`Remove ${host.pattern}`}
                    icon={<X size={15} />}
                    onClick={() => remove.mutate(host.id)}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
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
  const problem = add.error === null ? null : fieldErrors(add.error, ["pattern"]);
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
        error={problem === null ? undefined : (problem.fields["pattern"] ?? problem.general)}
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
