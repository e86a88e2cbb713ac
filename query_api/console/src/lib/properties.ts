/** Properties of hand-made nodes and edges as rows of a form: a value is a number or a truth value where it reads as one. */

export type Property = string | boolean | number;
export interface Row {
  name: string;
  value: string;
}

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** A text that reads as something else is in quotes, so that it stays a text. */
export const toRows = (properties: Readonly<Record<string, Property>>): Row[] =>
  Object.entries(properties).map(([name, value]) => ({
    name,
    value: typeof value === "string" && valueOf(value) !== value ? JSON.stringify(value) : String(value),
  }));

/** Without rows that are empty. Throws Error with a sentence for who filled them in. */
export function fromRows(rows: readonly Row[]): Record<string, Property> {
  const properties: Record<string, Property> = {};
  for (const { name: typed, value } of rows) {
    const name = typed.trim();
    if (name === "" && value.trim() === "") continue;
    if (name === "") throw new Error(`The property with the value “${value}” has no name.`);
    if (Object.hasOwn(properties, name)) throw new Error(`Two properties are called “${name}”: give each name once.`);
    properties[name] = valueOf(value.trim());
  }
  return properties;
}

function valueOf(text: string): Property {
  if (text === "true" || text === "false") return text === "true";
  if (NUMBER.test(text) && (!/^-?\d+$/.test(text) || Number.isSafeInteger(Number(text)))) return Number(text);
  if (!/^".*"$/s.test(text)) return text;
  try {
    return JSON.parse(text) as string;
  } catch {
    return text;
  }
}
