/** What a collection's settings may be: names, ranges, choices and help, as the service's /openapi.json has them. */

export interface Setting {
  name: string;
  title: string;
  /** What it does; parts between backticks are names. */
  help: string;
  kind: "number" | "choice";
  whole: boolean;
  low: number | null;
  high: number | null;
  /** Whether `low` itself is too low. */
  above: boolean;
  choices: readonly string[];
}

const TITLES: Record<string, string> = {
  child_characters: "Chunk size, characters",
  child_overlap: "Chunk overlap, characters",
  parent_characters: "Passage size, characters",
  parent_overlap: "Passage overlap, characters",
  method: "Where chunks end",
  language: "Language of sentences",
  next_chunk: "Weight of the next chunk",
  next_chunk_raise: "More of it where they are similar",
  similar_above: "Neighbours are similar above",
  similar: "Weight of a similar neighbour",
  related_above: "Distant chunks are related above",
  related: "Weight of a related chunk",
  max_related: "Most related chunks",
  similar_across: "Weight of a similar passage elsewhere",
  max_across: "Most similar passages elsewhere",
  extractor: "Extractor",
};

interface Property {
  description?: string;
  anyOf?: Property[];
  type?: string;
  enum?: string[];
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
}

export interface OpenApi {
  components: { schemas: Record<string, { properties?: Record<string, Property> }> };
}

/** The settings of a model such as `ChunkingChoice`, in its order. */
export function settingsOf(openapi: OpenApi, model: string): Setting[] {
  const properties = openapi.components.schemas[model]?.properties ?? {};
  return Object.entries(properties).map(([name, property]) => {
    const value = property.anyOf?.find(({ type }) => type !== "null") ?? property;
    return {
      name,
      title: TITLES[name] ?? name.replaceAll("_", " "),
      help: property.description ?? "",
      kind: value.type === "string" ? "choice" : "number",
      whole: value.type === "integer",
      low: value.minimum ?? value.exclusiveMinimum ?? null,
      high: value.maximum ?? null,
      above: value.minimum === undefined && value.exclusiveMinimum !== undefined,
      choices: value.enum ?? [],
    };
  });
}

/** `50 to 10,000`, or `above 0, up to 1`. */
export function rangeOf({ low, high, above }: Setting): string {
  const shown = (value: number) => value.toLocaleString("en");
  if (low === null && high === null) return "";
  if (low === null) return `up to ${shown(high!)}`;
  if (high === null) return above ? `above ${shown(low)}` : `${shown(low)} or more`;
  return above ? `above ${shown(low)}, up to ${shown(high)}` : `${shown(low)} to ${shown(high)}`;
}

/** What a person typed as the value to send, null for the default. Throws an Error that states what it may be. */
export function parsed(setting: Setting, text: string): number | string | null {
  if (text.trim() === "") return null;
  if (setting.kind === "choice") return text;
  const value = Number(text);
  if (!Number.isFinite(value) || (setting.whole && !Number.isInteger(value))) {
    throw new Error(setting.whole ? "Give a whole number." : "Give a number.");
  }
  const { low, high, above } = setting;
  if ((low !== null && (above ? value <= low : value < low)) || (high !== null && value > high)) {
    throw new Error(`Give a number from the range: ${rangeOf(setting)}.`);
  }
  return value;
}

/** Which of the settings a sentence of the service is about; null for none of them. */
export function namedIn(sentence: string, settings: readonly Setting[]): string | null {
  const places = settings
    .map(({ name }) => ({ name, at: sentence.search(new RegExp(`\\b${name}\\b`)) }))
    .filter(({ at }) => at >= 0)
    .sort((one, other) => one.at - other.at);
  return places[0]?.name ?? null;
}
