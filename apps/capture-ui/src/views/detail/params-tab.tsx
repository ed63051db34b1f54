import type { TrafficEntry } from "@headworks/capture-contract";
import { parseQuery, parseUrlEncoded } from "@headworks/http-fields";
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api.ts";
import { formatBytes } from "../../ui/format.ts";
import { ErrorState, Spinner } from "../../ui/states.tsx";
import styles from "./detail.module.css";
import { hasForm } from "./detail-tabs.ts";
import { ParamTable } from "./param-table.tsx";

/** Larger forms are shown by the body's own viewers only. */
const MAX_FORM_BYTES = 1_048_576;

/** Parameters of the query and of a form in the request's body. */
export function ParamsTab({ entry }: { readonly entry: TrafficEntry }) {
  const { request } = entry;
  return (
    <div className={styles["body"]}>
      <section className={styles["section"]}>
        <ParamTable label="Query" parameters={parseQuery(request.url)} empty="The address has no query." />
      </section>
      {hasForm(request) && (
        <section className={styles["section"]}>
          {request.body_stored_size > MAX_FORM_BYTES ? (
            <p className={styles["none"]}>
              The form is {formatBytes(request.body_stored_size)}; the body viewers in Messages show it.
            </p>
          ) : (
            <FormParams id={entry.id} />
          )}
        </section>
      )}
    </div>
  );
}

function FormParams({ id }: { readonly id: string }) {
  const form = useQuery({
    queryKey: ["entry", id, "form"],
    queryFn: async ({ signal }) => {
      const response = await api.traffic.getTrafficBody({
        params: { id, side: "request" },
        query: { decoded: "true", charset: "utf-8" },
        signal,
      });
      return response.text();
    },
  });
  if (form.error !== null) {
    return <ErrorState title="The form cannot be read" error={form.error} onRetry={() => void form.refetch()} />;
  }
  if (form.data === undefined) return <Spinner label="Reading the form" />;
  return <ParamTable label="Form" parameters={parseUrlEncoded(form.data)} empty="The form has no fields." />;
}
