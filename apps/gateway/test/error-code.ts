/** The code of an error in the envelope. */
export function errorCode({ body }: { readonly body: Buffer }): string {
  const { error } = JSON.parse(body.toString()) as { readonly error: { readonly code: string } };
  return error.code;
}
