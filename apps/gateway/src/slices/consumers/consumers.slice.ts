// Tested by ../../../test/consumers.test.ts
import type { ConfigDocument } from "@headworks/gateway-contract";
import { challengesOf } from "#request/challenges.ts";
import type { Refusal } from "#request/phases.ts";
import type { CompiledSlice, CompileScope, GatewaySlice } from "#slice.ts";
import { AuthenticationGate } from "./authentication-gate.ts";
import { ApiKeyReader } from "./api-key-reader.ts";
import { ApiKeys } from "./api-keys.ts";
import { checkConsumers } from "./consumers.check.ts";
import { API_KEY_FIELD } from "./presented-credentials.ts";

/** Recognises the consumer behind each request by the credential it presents. */
export function createConsumers(): GatewaySlice {
  return { name: "consumers", check: checkConsumers, compile };
}

function compile(document: ConfigDocument, scope: CompileScope): CompiledSlice {
  const { consumers, gateway } = document;
  const isOn = consumers.length > 0 || (gateway.jwt_providers ?? []).length > 0;
  const unauthorized: Refusal = { code: "unauthorized", fields: [...challengesOf(document)] };
  const hides = gateway.forward_credentials === true ? undefined : new Set([API_KEY_FIELD]);
  const readers = [new ApiKeyReader(new ApiKeys(consumers, (text) => scope.secret(text)), hides)];
  const authentication = { readers, certificates: undefined, unauthorized };
  const optional = new AuthenticationGate(authentication, false);
  const required = new AuthenticationGate(authentication, true);
  return {
    gateFor: (route) => {
      // A route that asks for a consumer stays shut when the document knows none.
      if (route.auth_required === true) return required;
      return isOn ? optional : undefined;
    },
  };
}
