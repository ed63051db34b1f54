import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Socks5Credentials } from "@headworks/socks5";

/** Compares credentials in constant time, whatever their lengths: keyed digests are compared. */
export function credentialsCheck(username: string, password: string): (given: Socks5Credentials) => boolean {
  const key = randomBytes(32);
  const digest = (bytes: Uint8Array): Buffer => createHmac("sha256", key).update(bytes).digest();
  const rightUsername = digest(Buffer.from(username, "utf8"));
  const rightPassword = digest(Buffer.from(password, "utf8"));
  return (given) => {
    const isUsername = timingSafeEqual(digest(given.username), rightUsername);
    const isPassword = timingSafeEqual(digest(given.password), rightPassword);
    return isUsername && isPassword;
  };
}
