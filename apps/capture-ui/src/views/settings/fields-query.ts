import { queryOptions } from "@tanstack/react-query";
import { api } from "../../api.ts";

/** The service's description of each setting. */
export const fieldsQuery = queryOptions({
  queryKey: ["config", "fields"],
  queryFn: ({ signal }) => api.config.describeConfig({ signal }),
});
