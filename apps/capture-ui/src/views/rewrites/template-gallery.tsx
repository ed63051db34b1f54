import { useQuery } from "@tanstack/react-query";
import { api } from "../../api.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { actionWords, draftOfAction } from "./action-draft.ts";
import { newRewrite, type RewriteDraft } from "./rewrite-draft.ts";
import shared from "../../rules/rule-parts.module.css";
import styles from "./rewrites.module.css";

/** Rules to begin with. */
export function TemplateGallery({
  onChoose,
  onClose,
}: {
  readonly onChoose: (draft: RewriteDraft) => void;
  readonly onClose: () => void;
}) {
  const templates = useQuery({
    queryKey: ["rewrites", "templates"],
    queryFn: ({ signal }) => api.rewrites.listRewriteTemplates({ signal }),
    staleTime: Infinity,
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title="Templates"
      size="wide"
      description="Each becomes a rule that you can change before it is saved."
    >
      {templates.error !== null && <ErrorState title="The templates cannot be loaded" error={templates.error} />}
      {templates.isPending && <EmptyState icon={<Spinner />} title="" />}
      <div className={styles["gallery"]}>
        {templates.data?.map(({ name, description, template }) => (
          <button
            key={name}
            type="button"
            className={styles["template"]}
            onClick={() =>
              onChoose({
                ...newRewrite(),
                name,
                direction: template.direction,
                actions: template.rewrites.map(draftOfAction),
              })
            }
          >
            <b>{name}</b>
            <span>{description}</span>
            <span className={shared["does"]}>{template.rewrites.map(actionWords).join(" · ")}</span>
          </button>
        ))}
      </div>
    </Dialog>
  );
}
