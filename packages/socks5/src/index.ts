export { Socks5ClientHandshake, type ClientFailure, type ClientStep } from "./client-handshake.ts";
export {
  COMMAND,
  METHOD,
  REPLY,
  replyBytes,
  replyText,
  type ReplyCode,
  type Socks5Credentials,
  type Socks5Host,
  type Socks5Place,
  type Socks5Problem,
  type Socks5Request,
} from "./messages.ts";
export { Socks5ServerHandshake, type ServerRefusal, type ServerStep } from "./server-handshake.ts";
