import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK, type JWTPayload } from "jose";
import { startOrigin, type Origin, type OriginOptions } from "@headworks/testkit";

/** A key pair of an issuer. */
export interface IssuerKey {
  readonly kid: string;
  readonly algorithm: string;
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
}

export async function issuerKey(kid: string, algorithm = "ES256"): Promise<IssuerKey> {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
  return { kid, algorithm, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: "sig" } };
}

/** What a token says besides the claims that every token of these tests has; undefined leaves one out. */
export type TokenClaims = { readonly [K in keyof JWTPayload]?: JWTPayload[K] | undefined };

/** A signed token of the issuer `https://issuer.test`, good for five minutes from `nowS`. */
export async function token(
  key: IssuerKey,
  nowS: number,
  claims: TokenClaims = {},
  header: { readonly kid?: string | undefined; readonly alg?: string } = {},
): Promise<string> {
  const whole = { iss: "https://issuer.test", sub: "user-1", iat: nowS, exp: nowS + 300, ...claims };
  const { kid = key.kid, alg = key.algorithm } = header;
  const protectedHeader = "kid" in header && header.kid === undefined ? { alg } : { alg, kid };
  return await new SignJWT(whole as JWTPayload).setProtectedHeader(protectedHeader).sign(key.privateKey);
}

/** What a server of key sets answers. */
export interface KeyServerState {
  keys: readonly JWK[];
  /** Instead of a key set; for instance a status, or bytes that are none. */
  response: { readonly status: number; readonly body: string; readonly fields?: Record<string, string> } | undefined;
}

/** A server of key sets; a test may change its state at any time. */
export interface KeyServer extends Origin {
  readonly state: KeyServerState;
  readonly fetches: () => number;
}

export async function startKeyServer(keys: readonly JWK[], options: OriginOptions = {}): Promise<KeyServer> {
  const state: KeyServerState = { keys, response: undefined };
  const origin = await startOrigin({
    ...options,
    handler: (_request, response) => {
      const { status, body, fields } = state.response ?? { status: 200, body: JSON.stringify({ keys: state.keys }) };
      response.writeHead(status, { "Content-Type": "application/json", ...fields }).end(body);
    },
  });
  return Object.assign(origin, { state, fetches: () => origin.requests.length });
}
