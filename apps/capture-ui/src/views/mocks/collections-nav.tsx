import type { MockCollection, MockRule } from "@headworks/capture-contract";
import { MoreHorizontal, Plus } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { setParams } from "../../shell/router.ts";
import { attempt } from "../../ui/toast.tsx";
import { Button, IconButton } from "../../ui/button.tsx";
import { confirmAction, Dialog } from "../../ui/dialog.tsx";
import { Field, TextInput } from "../../ui/field.tsx";
import { isolatedName } from "../../ui/format.ts";
import { Menu } from "../../ui/menu.tsx";
import styles from "./mocks.module.css";

/** Collections with their mock counts; selecting one filters the list. */
export function CollectionsNav({
  collections,
  rules,
  chosen,
  none,
}: {
  readonly collections: readonly MockCollection[];
  readonly rules: readonly MockRule[];
  readonly chosen: string | null;
  /** Key for mocks without a collection. */
  readonly none: string;
}) {
  const [naming, setNaming] = useState<MockCollection | "new" | null>(null);
  const choose = (id: string | null): void => setParams({ collection: id }, { replace: true });
  const line = (id: string | null, name: string, count: number) => (
    <div className={styles["collection"]} data-chosen={chosen === id || undefined}>
      <button
        type="button"
        className={styles["collectionName"]}
        aria-pressed={chosen === id}
        onClick={() => choose(id)}
      >
        <span>{name}</span>
        <span className={styles["count"]}>{count}</span>
      </button>
    </div>
  );
  return (
    <div className={styles["collections"]} role="group" aria-label="Collections">
      <div className={styles["collectionsHead"]}>
        Collections
        <IconButton label="New collection" icon={<Plus size={14} />} onClick={() => setNaming("new")} />
      </div>
      {line(null, "All mocks", rules.length)}
      {collections.map((collection) => (
        <Collection
          key={collection.id}
          collection={collection}
          isChosen={chosen === collection.id}
          onChoose={() => choose(collection.id)}
          onRename={() => setNaming(collection)}
          onGone={() => choose(null)}
        />
      ))}
      {collections.length > 0 &&
        line(none, "No collection", rules.filter((rule) => rule.collection_id === null).length)}
      {naming !== null && <NameDialog collection={naming === "new" ? null : naming} onClose={() => setNaming(null)} />}
    </div>
  );
}

async function change(what: string, action: () => Promise<unknown>): Promise<boolean> {
  const done = await attempt(what, action);
  await queryClient.invalidateQueries({ queryKey: ["mocks"] });
  return done;
}

function Collection({
  collection,
  isChosen,
  onChoose,
  onRename,
  onGone,
}: {
  readonly collection: MockCollection;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
  readonly onRename: () => void;
  readonly onGone: () => void;
}) {
  const { id, name, enabled } = collection;
  const remove = async (): Promise<void> => {
    const sure = await confirmAction({
      title: `Delete ${isolatedName(name)}?`,
      text: "Its mocks are kept, without a collection.",
      action: "Delete",
      danger: true,
    });
    if (!sure) return;
    if (
      await change("Could not delete the collection", () =>
        api.mocks.deleteMockCollection({ params: { id }, query: {} }),
      )
    ) {
      onGone();
    }
  };
  return (
    <div className={styles["collection"]} data-chosen={isChosen || undefined} data-off={!enabled || undefined}>
      <button type="button" className={styles["collectionName"]} aria-pressed={isChosen} onClick={onChoose}>
        <i
          className={styles["dot"]}
          style={enabled ? { background: collection.color ?? undefined } : { opacity: 0.3 }}
        />
        <span>{name}</span>
        <span className={styles["count"]}>{enabled ? collection.rule_count : "off"}</span>
      </button>
      <Menu
        align="end"
        trigger={<IconButton label={`More actions for ${isolatedName(name)}`} icon={<MoreHorizontal size={14} />} />}
        items={() => [
          {
            kind: "item",
            label: enabled ? "Disable" : "Enable",
            onSelect: () =>
              void change("Could not switch the collection", () =>
                api.mocks.updateMockCollection({ params: { id }, body: { enabled: !enabled } }),
              ),
          },
          { kind: "item", label: "Rename…", onSelect: onRename },
          { kind: "separator" },
          { kind: "item", label: "Delete", danger: true, onSelect: () => void remove() },
        ]}
      />
    </div>
  );
}

function NameDialog({
  collection,
  onClose,
}: {
  readonly collection: MockCollection | null;
  readonly onClose: () => void;
}) {
  const [name, setName] = useState(collection?.name ?? "");
  const save = async (): Promise<void> => {
    const body = { name: name.trim() };
    const done = await change("Could not save the collection", () =>
      collection === null
        ? api.mocks.createMockCollection({ body })
        : api.mocks.updateMockCollection({ params: { id: collection.id }, body }),
    );
    if (done) onClose();
  };
  return (
    <Dialog
      open
      onClose={onClose}
      onSubmit={() => void save()}
      title={collection === null ? "New collection" : "Rename collection"}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" disabled={name.trim() === ""}>
            {collection === null ? "Create" : "Save"}
          </Button>
        </>
      }
    >
      <Field label="Name">
        <TextInput maxLength={255} value={name} onChange={(event) => setName(event.target.value)} />
      </Field>
    </Dialog>
  );
}
