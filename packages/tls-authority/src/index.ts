export {
  type AuthorityFiles,
  CertificateAuthority,
  type CreateOptions,
  type Leaf,
  type LeafNames,
  type LeafOptions,
} from "./authority.ts";
export { oldClientTls, serverTls, type ServerTls } from "./server-tls.ts";
export { AuthorityError, type AuthorityErrorCode } from "./certificate.ts";
