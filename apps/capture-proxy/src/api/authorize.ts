import type { Access } from "@headworks/contract-kit";

/** The caller. `scopes` are `resource:permission` texts, with `*` for either part. */
export interface Principal {
  readonly name: string;
  readonly scopes: readonly string[];
}

/** Gives the caller of a request, or undefined when it shows no credentials. Throws ApiError for bad ones. */
export type Identify = (
  headers: Readonly<Record<string, string | string[] | undefined>>,
) => Promise<Principal | undefined> | Principal | undefined;

/** The caller of every request while authentication is off. */
export const LOCAL_ADMIN: Principal = { name: "local", scopes: ["*:*"] };

export type Authorization = "allowed" | "unauthenticated" | "forbidden";

/** Whether a caller may run an operation, from the operation's `access` and the caller's scopes alone. */
export function authorize(access: Access, principal: Principal | undefined): Authorization {
  if (access === "public") return "allowed";
  if (principal === undefined) return "unauthenticated";
  const [resource = "", permission = ""] = access.split(":");
  return principal.scopes.some((scope) => covers(scope, resource, permission)) ? "allowed" : "forbidden";
}

function covers(scope: string, resource: string, permission: string): boolean {
  const [ofResource, ofPermission, ...rest] = scope.split(":");
  return (
    rest.length === 0 &&
    (ofResource === "*" || ofResource === resource) &&
    (ofPermission === "*" || ofPermission === permission)
  );
}
