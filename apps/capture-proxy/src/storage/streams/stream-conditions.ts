import type { SqlValue } from "../database.ts";
import type { AttributeCondition } from "./stream-store.ts";

/** A piece of SQL over the table `stream`, called `s`, with the values of its question marks. */
export interface Where {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/** The value of an attribute, NULL where a stream does not have it. */
export function attributeValue(attribute: string): Where {
  return { sql: "json_extract(s.attributes, ?)", values: [`$.${JSON.stringify(attribute)}`] };
}

/** Adds conditions on attributes. */
export function withAttributes(where: Where, conditions: readonly AttributeCondition[] | undefined): Where {
  if (conditions === undefined || conditions.length === 0) return where;
  const added = conditions.map(conditionSql);
  return {
    sql: [where.sql, ...added.map(({ sql }) => sql)].join(" AND "),
    values: [...where.values, ...added.flatMap(({ values }) => values)],
  };
}

/** Leaves only streams of these ids. */
export function withIds(where: Where, ids: readonly string[] | undefined): Where {
  if (ids === undefined) return where;
  const marks = ids.map(() => "?").join(", ");
  return { sql: `${where.sql} AND s.id IN (${marks})`, values: [...where.values, ...ids] };
}

function conditionSql({ attribute, match, text }: AttributeCondition): Where {
  const value = attributeValue(attribute);
  const lower = text.toLowerCase();
  switch (match) {
    case "equals":
      return { sql: `${value.sql} = ?`, values: [...value.values, text] };
    case "contains":
      return { sql: `instr(lower(${value.sql}), ?) > 0`, values: [...value.values, lower] };
    case "name":
      // With a dot before both, the end of a name begins where a part does.
      return {
        sql: `substr(lower('.' || ${value.sql}), -length(?)) = ?`,
        values: [...value.values, `.${lower}`, `.${lower}`],
      };
  }
}
