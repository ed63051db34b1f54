import { queryOptions } from "@tanstack/react-query";
import { api } from "../../api.ts";

/** What the service says about each of its settings. */
export const fieldsQuery = queryOptions({
  queryKey: ["config", "fields"],
  queryFn: ({ signal }) => api.config.describeConfig({ signal }),
});
