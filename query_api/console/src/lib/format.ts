/** Numbers, times and sizes as people read them. */

const NUMBER = new Intl.NumberFormat("en");
const BYTES = ["B", "kB", "MB", "GB", "TB"];
const DATE = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const STEPS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

export const count = (value: number): string => NUMBER.format(value);

export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

/** Seconds as `12 ms`, `3.4 s`, `5 min`. */
export function seconds(value: number): string {
  if (value === 0) return "0 s";
  if (value < 0.0095) return `${(value * 1000).toFixed(1)} ms`;
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 100) return `${value.toFixed(1)} s`;
  return `${Math.round(value / 60)} min`;
}

export function bytes(value: number): string {
  let unit = 0;
  while (value >= 1000 && unit < BYTES.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${BYTES[unit]}`;
}

export const percent = (share: number): string => `${Math.round(share * 100)} %`;

/** An RFC 3339 time in this browser's zone. */
export const time = (text: string): string => DATE.format(new Date(text));

/** How long ago an RFC 3339 time was. */
export function ago(text: string, now = Date.now()): string {
  const passed = (now - Date.parse(text)) / 1000;
  const [unit, size] = STEPS.find(([, each]) => passed >= each) ?? ["second", 1];
  return passed > 30 * 86_400 ? time(text) : RELATIVE.format(-Math.floor(passed / size), unit);
}
