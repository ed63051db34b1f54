import { DEFAULT_ADMIN_BIND, type Admin, type ConfigDocument, type Issue } from "@headworks/gateway-contract";
import type { Place } from "./pointer.ts";
import type { SourcePlaces } from "./read-document.ts";

/** What is kept of the document that the process was started with. */
export type StartedWith = Pick<ConfigDocument, "admin">;

/** Warnings about parts of the admin section that are other ones than at the start, where alone they are read. */
export function startOnlyWarnings(
  started: StartedWith | undefined,
  next: StartedWith,
  places: SourcePlaces,
): readonly Issue[] {
  if (started === undefined) return [];
  const warning = (place: Place, what: string): Issue => ({
    code: "restart_needed",
    ...places.locate(place),
    message: `${what} when the gateway is started again, not before`,
    severity: "warning",
  });
  const [before, after] = [started.admin, next.admin];
  if (before === undefined || after === undefined) {
    if (before === after) return [];
    return [warning(["admin"], after === undefined ? "The admin API is closed" : "The admin API is opened")];
  }
  return PARTS.filter(({ of }) => of(before) !== of(after)).map(({ place, what }) => warning(place, what));
}

interface StartOnlyPart {
  readonly place: Place;
  readonly of: (admin: Admin) => unknown;
  readonly what: string;
}

const PARTS: readonly StartOnlyPart[] = [
  {
    place: ["admin", "bind"],
    of: ({ bind = DEFAULT_ADMIN_BIND }) => bind,
    what: "The admin API moves to this address",
  },
  { place: ["admin", "tls"], of: ({ tls }) => tls === undefined, what: "The admin API begins or ends to speak TLS" },
  { place: ["admin", "audit_log"], of: ({ audit_log: log }) => log?.path, what: "The audit log goes there" },
];
