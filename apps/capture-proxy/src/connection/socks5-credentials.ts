import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Socks5Credentials } from "@headworks/socks5";

/**
 * Compares what clients say with the one right user name and password. It takes the same time wherever they differ, in
 * length too: compared are digests under a key of this process.
 */
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
