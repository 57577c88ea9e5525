// Formats of numbers, times and sizes: sizes in MiB, rates in MiB/s.

const MIB = 1 << 20;
const number = (digits) => new Intl.NumberFormat("en", { maximumFractionDigits: digits });
const [whole, tenths] = [number(0), number(1)];
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", {
  weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit",
});

export const NONE = "\u2013";

const known = (value) => value !== null && value !== undefined;

/** Return a number with separators. */
export function count(value) {
  return value === null || value === undefined ? NONE : whole.format(value);
}

function scaled(bytes) {
  const value = bytes / MIB;
  if (value === 0) return "0";
  if (value < 0.05) return "<0.1";
  return value < 100 ? tenths.format(value) : whole.format(value);
}

/** Return bytes per second as MiB/s. */
export function rate(bytes) {
  return bytes === null || bytes === undefined ? NONE : `${scaled(bytes)} MiB/s`;
}

/** Return bytes as MiB, and from 10 GiB on as GiB. */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return NONE;
  return bytes >= 10240 * MIB ? `${scaled(bytes / 1024)} GiB` : `${scaled(bytes)} MiB`;
}

/** Return seconds with a suitable unit. */
export function span(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NONE;
  if (seconds < 0) return `-${span(-seconds)}`;
  if (seconds === 0) return "0 s";
  if (seconds < 0.9995) return `${Math.max(1, Math.round(1000 * seconds))} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 99.5) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return minutes < 2880
    ? `${Math.floor(minutes / 60)} h ${minutes % 60} min`
    : `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}

/** Return a time of day; times are seconds since the epoch. */
export function at(seconds) {
  return seconds === null || seconds === undefined ? NONE : clock.format(1000 * seconds);
}

/** Return a date and time. */
export function date(seconds) {
  return seconds === null || seconds === undefined ? NONE : day.format(1000 * seconds);
}

/** Return a share as a percentage. */
export function share(value) {
  return value === null || value === undefined ? NONE : `${whole.format(100 * value)}%`;
}

/** Return the share that a job is granted and, if it is known, the one that it receives. */
export function shares(job) {
  return known(job.received) ? `${share(job.share)} granted, ${share(job.received)} received` : share(job.share);
}

/** Return a value with three significant digits. */
export function figure(value) {
  if (value === null || value === undefined) return NONE;
  if (typeof value !== "number") return String(value);
  return Math.abs(value) >= 1000 ? whole.format(value) : String(Number(value.toPrecision(4)));
}

/** Return a change as a percentage with its sign. */
export function change(part) {
  const value = 100 * part;
  return Math.abs(value) < 0.05 ? "0%" : `${value > 0 ? "+" : "\u2212"}${tenths.format(Math.abs(value))}%`;
}

/** Return "1 job", "2 jobs". */
export function some(value, one, more = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : more}`;
}
