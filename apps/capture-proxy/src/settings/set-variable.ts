/** The first of these environment variables that is set; an empty one counts as unset, as the XDG specification has it. */
export function setVariable(
  environment: Readonly<Record<string, string | undefined>>,
  ...names: readonly string[]
): { readonly name: string; readonly value: string } | undefined {
  for (const name of names) {
    const value = environment[name] ?? "";
    if (value !== "") return { name, value };
  }
  return undefined;
}
