// Spans of time as text.

const UNITS = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

/** A span of seconds, rounded to what matters of it. */
export function spanText(seconds) {
  const [unit, name] = UNITS.find(([one]) => seconds >= 1.5 * one) ?? [1, "s"];
  return `${Math.round(seconds / unit)} ${name}`;
}
