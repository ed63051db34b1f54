// Tested by field-values.test.ts
const imfFixdate = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT$/;

/**
 * Reads an IMF-fixdate (RFC 9110 section 5.6.7) to Unix milliseconds. Strict: a wrong weekday, a 30 February or any
 * other form gives undefined.
 */
export function parseHttpDate(text: string): number | undefined {
  if (!imfFixdate.test(text)) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) || new Date(ms).toUTCString() !== text ? undefined : ms;
}

/** An IMF-fixdate from Unix milliseconds; fractions of a second are cut. Throws a RangeError outside years 0 to 9999. */
export function formatHttpDate(ms: number): string {
  const date = new Date(ms);
  const year = date.getUTCFullYear();
  if (!(year >= 0 && year <= 9999)) throw new RangeError("an HTTP date lies in the years 0 to 9999");
  return date.toUTCString();
}

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/** Reads the date of a cookie to Unix milliseconds by the forgiving algorithm of RFC 6265 section 5.1.1. */
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
