const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const monthNames = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const imfFixdate =
  /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT$/;

export type ImfFixdate =
  | { readonly kind: "date"; readonly epochS: number }
  /** No IMF-fixdate, or a day or time that does not exist. */
  | { readonly kind: "malformed" }
  /** A date with the wrong weekday; `weekday` is the right one. */
  | { readonly kind: "weekday-mismatch"; readonly epochS: number; readonly weekday: string };

/**
 * Parses an IMF-fixdate (RFC 9110 section 5.6.7) to Unix seconds, negative before 1970. Strict: letter case counts,
 * and obsolete forms and leap seconds (which Unix time cannot represent) are malformed.
 */
export function parseImfFixdate(text: string): ImfFixdate {
  const match = imfFixdate.exec(text);
  if (match === null) return { kind: "malformed" };
  const [, weekday, dayText, monthName = "", yearText, hourText, minuteText, secondText] = match;
  const month = monthNames.indexOf(monthName);
  const [day, year] = [Number(dayText), Number(yearText)];
  const [hour, minute, second] = [Number(hourText), Number(minuteText), Number(secondText)];
  if (month === -1 || day < 1 || day > daysIn(month, year)) return { kind: "malformed" };
  if (hour > 23 || minute > 59 || second > 59) return { kind: "malformed" };
  const days = daysSinceEpoch(year, month, day);
  const epochS = days * 86_400 + hour * 3600 + minute * 60 + second;
  // 1 January 1970 was a Thursday.
  const rightWeekday = weekdays[(((days + 4) % 7) + 7) % 7] ?? "";
  return rightWeekday === weekday
    ? { kind: "date", epochS }
    : { kind: "weekday-mismatch", epochS, weekday: rightWeekday };
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

function daysIn(month: number, year: number): number {
  if (month === 1) return isLeap(year) ? 29 : 28;
  return month === 3 || month === 5 || month === 8 || month === 10 ? 30 : 31;
}

/** Days of the proleptic Gregorian calendar from 1 January 1970; `month` counts from 0. */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const before = year - 1;
  let days = before * 365 + Math.floor(before / 4) - Math.floor(before / 100) + Math.floor(before / 400) - 719_162;
  for (let each = 0; each < month; each += 1) days += daysIn(each, year);
  return days + day - 1;
}

const rfc850Date =
  /^(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, ([0-9]{2})-([A-Z][a-z]{2})-([0-9]{2}) ([0-9]{2}:[0-9]{2}:[0-9]{2}) GMT$/;
const asctimeDate =
  /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) ([A-Z][a-z]{2}) ([ 0-9][0-9]) ([0-9]{2}:[0-9]{2}:[0-9]{2}) ([0-9]{4})$/;

/**
 * Parses an HTTP date in any of its three forms (RFC 9110 section 5.6.7) to Unix milliseconds. Strict: undefined for
 * a wrong weekday, a 30 February or any other form. A two-digit year is at most 50 years after `nowMs`.
 */
export function parseHttpDate(text: string, nowMs = Date.now()): number | undefined {
  const date = parseImfFixdate(text[3] === "," ? text : asImfFixdate(text, nowMs));
  return date.kind === "date" ? date.epochS * 1000 : undefined;
}

/** Converts an obsolete form to an IMF-fixdate; returns any other text unchanged. */
function asImfFixdate(text: string, nowMs: number): string {
  const asctime = asctimeDate.exec(text);
  if (asctime !== null) {
    const [, weekday, month, day = "", time, year] = asctime;
    return `${weekday}, ${day.replace(" ", "0")} ${month} ${year} ${time} GMT`;
  }
  const rfc850 = rfc850Date.exec(text);
  if (rfc850 === null) return text;
  const [, weekday = "", day, month, twoDigits, time] = rfc850;
  const thisYear = new Date(nowMs).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + Number(twoDigits);
  return `${weekday.slice(0, 3)}, ${day} ${month} ${year > thisYear + 50 ? year - 100 : year} ${time} GMT`;
}

/** An IMF-fixdate from Unix milliseconds; fractions of a second are cut. Throws a RangeError outside years 0 to 9999. */
export function formatHttpDate(ms: number): string {
  const date = new Date(ms);
  const year = date.getUTCFullYear();
  if (!(year >= 0 && year <= 9999)) throw new RangeError("an HTTP date lies in the years 0 to 9999");
  return date.toUTCString();
}

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/** Parses a cookie date to Unix milliseconds by the lenient algorithm of RFC 6265 section 5.1.1. */
export function parseCookieDate(text: string): number | undefined {
  let time: [number, number, number] | undefined;
  let day: number | undefined;
  let month: number | undefined;
  let year: number | undefined;
  for (const part of text.split(/[\t\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+/)) {
    const clock = /^([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[^0-9]|$)/.exec(part);
    const place = months.indexOf(part.slice(0, 3).toLowerCase());
    if (time === undefined && clock !== null) time = [Number(clock[1]), Number(clock[2]), Number(clock[3])];
    else if (day === undefined && /^[0-9]{1,2}(?:[^0-9]|$)/.test(part)) day = Number.parseInt(part, 10);
    else if (month === undefined && place !== -1) month = place;
    else if (year === undefined && /^[0-9]{2,4}(?:[^0-9]|$)/.test(part)) year = Number.parseInt(part, 10);
  }
  if (time === undefined || day === undefined || month === undefined || year === undefined) return undefined;
  if (year >= 70 && year <= 99) year += 1900;
  else if (year <= 69) year += 2000;
  const [hour, minute, second] = time;
  if (day < 1 || year < 1601 || hour > 23 || minute > 59 || second > 59) return undefined;
  const date = new Date(Date.UTC(year, month, day, hour, minute, second));
  return date.getUTCDate() === day ? date.getTime() : undefined;
}
