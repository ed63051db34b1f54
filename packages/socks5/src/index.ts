export {
  type ClientFailure,
  type ClientStep,
  type ServerRefusal,
  type ServerStep,
  Socks5ClientHandshake,
  Socks5ServerHandshake,
} from "./handshake.ts";
export {
  COMMAND,
  METHOD,
  REPLY,
  replyBytes,
  replyText,
  type ReplyCode,
  type Socks5Credentials,
  type Socks5Host,
  type Socks5Address,
  type Socks5Problem,
  type Socks5Request,
} from "./messages.ts";
