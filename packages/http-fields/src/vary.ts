/**
 * Adds `name` to Vary in a flat list of fields (name, value, name, value, …), in place. All Vary lines become one at
 * the position of the first; members keep their order and spelling, each once. `*` (RFC 9110 section 12.5.5) includes
 * everything and stays alone.
 */
export function foldVary(fields: string[], name: string): void {
  let place = -1;
  let kept = 0;
  const members: string[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const fieldName = fields[at] ?? "";
    const value = fields[at + 1] ?? "";
    const isVary = fieldName.length === 4 && fieldName.toLowerCase() === "vary";
    if (isVary) addMembers(members, value);
    if (isVary && place !== -1) continue;
    if (isVary) place = kept;
    fields[kept] = fieldName;
    fields[kept + 1] = value;
    kept += 2;
  }
  fields.length = kept;
  if (place === -1) {
    fields.push("Vary", name);
    return;
  }
  addMembers(members, name);
  fields[place + 1] = members.includes("*") ? "*" : members.join(", ");
}

function addMembers(members: string[], value: string): void {
  for (const piece of value.split(",")) {
    const member = piece.trim();
    const lower = member.toLowerCase();
    if (member !== "" && !members.some((each) => each.toLowerCase() === lower)) members.push(member);
  }
}
