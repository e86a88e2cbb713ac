/** Parameters as a query string, of routes and of the page's own addresses. */

export type Parameters = Record<string, string | readonly string[] | number | boolean | null | undefined>;

/** `path?…`; what is empty, null or false is left out, and a list is repeated. */
export function withQuery(path: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === null || value === undefined || value === "" || value === false) continue;
    for (const each of Array.isArray(value) ? value : [value]) query.append(name, String(each));
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}
