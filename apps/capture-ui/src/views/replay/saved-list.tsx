import type { SavedRequest } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { api } from "../../api.ts";
import { queryClient, savedRequestsQuery } from "../../queries.ts";
import { nameForRequest } from "../../rules/from-entry.ts";
import { attempt, toast } from "../../ui/toast.tsx";
import { IconButton } from "../../ui/button.tsx";
import { isolatedName } from "../../ui/format.ts";
import { ErrorState } from "../../ui/states.tsx";
import { useRowFocus } from "../../ui/list-table.tsx";
import { methodColor } from "../detail/entry-facts.ts";
import styles from "./replay.module.css";

export function savedTitle({ name, request }: SavedRequest): string {
  return name ?? nameForRequest(request);
}

async function remove(saved: SavedRequest): Promise<boolean> {
  const done = await attempt("Could not delete the request", () =>
    api.replay.deleteSavedRequest({ params: { id: saved.id } }),
  );
  await queryClient.invalidateQueries({ queryKey: savedRequestsQuery.queryKey });
  if (done) {
    toast({
      title: `${isolatedName(savedTitle(saved))} deleted`,
      durationMs: 8000,
      action: { label: "Undo", onSelect: () => void restore(saved) },
    });
  }
  return done;
}

async function restore({ name, request, collection, tags }: SavedRequest): Promise<void> {
  await attempt("Could not restore the request", () =>
    api.replay.saveRequest({ body: { name, request, collection, tags } }),
  );
  await queryClient.invalidateQueries({ queryKey: savedRequestsQuery.queryKey });
}

export function SavedList({
  chosenId,
  onShow,
  onNew,
}: {
  readonly chosenId: string | null;
  readonly onShow: (id: string | null) => void;
  readonly onNew: () => void;
}) {
  const saved = useQuery(savedRequestsQuery);
  const watchFocus = useRowFocus("li");
  const groups = Map.groupBy(saved.data ?? [], (request) => request.collection ?? "");
  const names = [...groups.keys()].toSorted((left, right) => left.localeCompare(right));
  return (
    <section className={styles["saved"]} aria-label="Saved requests">
      <div className={styles["savedHead"]}>
        <h1>Replay</h1>
        <IconButton label="New request" icon={<Plus size={16} />} onClick={onNew} />
      </div>
      {saved.error !== null && <ErrorState title="Could not load the requests" error={saved.error} />}
      <div className={styles["savedList"]} onFocus={watchFocus}>
        {names.map((name) => (
          <div key={name}>
            {(names.length > 1 || name !== "") && (
              <p className={styles["group"]}>{name === "" ? "No collection" : name}</p>
            )}
            <ul aria-label={name === "" ? "No collection" : name}>
              {groups.get(name)?.map((each) => (
                <li
                  key={each.id}
                  tabIndex={-1}
                  className={styles["request"]}
                  data-chosen={each.id === chosenId || undefined}
                >
                  <span className={styles["method"]} style={{ color: methodColor(each.request.method) }}>
                    {each.request.method}
                  </span>
                  <button
                    type="button"
                    className={styles["open"]}
                    aria-current={each.id === chosenId || undefined}
                    onClick={() => onShow(each.id)}
                  >
                    <span>{savedTitle(each)}</span>
                    {each.name !== null && <span className={styles["quiet"]}>{each.request.url}</span>}
                  </button>
                  <IconButton
                    label={`Delete ${isolatedName(savedTitle(each))}`}
                    icon={<Trash2 size={13} />}
                    onClick={() => {
                      void remove(each).then((done) => {
                        if (done && each.id === chosenId) onShow(null);
                      });
                    }}
                  />
                </li>
              ))}
            </ul>
          </div>
        ))}
        {saved.isSuccess && saved.data.length === 0 && <p className={styles["group"]}>No saved requests.</p>}
      </div>
    </section>
  );
}
