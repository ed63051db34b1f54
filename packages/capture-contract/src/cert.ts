import { defineOperations, media, oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { Timestamp } from "./primitives.ts";

export const CertificateInfo = strictObject(
  {
    subject: Type.String(),
    fingerprint_sha256: Type.String({ description: "Upper-case hex pairs with colons" }),
    serial: Type.String(),
    not_before: Timestamp,
    not_after: Timestamp,
    expires_soon: Type.Boolean({ description: "Fewer than 30 days left" }),
    path: Type.String({ description: "The PEM file on this machine" }),
    imported: Type.Boolean({
      description: "The CA was made elsewhere: imported with `weir ca import` or given with `--ca-cert-file`",
    }),
  },
  { $id: "CertificateInfo" },
);
export type CertificateInfo = Static<typeof CertificateInfo>;

export const certOperations = defineOperations({
  getCaCertificate: {
    method: "GET",
    path: "/cert/ca",
    summary: "The CA certificate, PEM by default",
    access: "public",
    query: strictObject({ format: Type.Optional(oneOf(["pem", "der"], { default: "pem" })) }),
    responses: { 200: media("application/x-x509-ca-cert", "The CA certificate") },
  },
  getCertificateInfo: {
    method: "GET",
    path: "/cert/info",
    summary: "Subject, fingerprint and validity of the CA certificate",
    access: "public",
    responses: { 200: CertificateInfo },
  },
  getMobileConfig: {
    method: "GET",
    path: "/cert/mobileconfig",
    summary: "An Apple configuration profile that holds the CA certificate",
    access: "public",
    responses: { 200: media("application/x-apple-aspen-config", "The profile") },
  },
  renewCertificate: {
    method: "POST",
    path: "/cert/renew",
    summary: "Replace the CA with a new one, which clients must trust again",
    access: "config:write",
    responses: { 200: CertificateInfo },
  },
  getSetup: {
    method: "GET",
    path: "/cert/setup",
    summary: "Content of the set-up page: addresses, commands for each platform, QR code",
    access: "public",
    responses: {
      200: strictObject({
        proxy_address: Type.String(),
        api_address: Type.String(),
        magic_host: Type.String({ description: "The page reachable through the proxy: `http://weir/`" }),
        command: Type.String({
          description: "The command with which Weir was started: `weir` or `npx weir`",
        }),
        local_only: Type.Boolean({ description: "The proxy listens on loopback only: other devices cannot reach it" }),
        qr_svg: Type.String({
          description: "QR code (SVG) of the set-up page's address, for a phone on the same network",
        }),
        platforms: Type.Array(
          strictObject({
            id: Type.String(),
            name: Type.String(),
            steps: Type.Array(Type.String()),
            command: Type.Optional(Type.String()),
          }),
        ),
        environment: Type.Array(strictObject({ name: Type.String(), value: Type.String() })),
      }),
    },
  },
  testInterception: {
    method: "POST",
    path: "/cert/test",
    summary: "Send one HTTPS request through the proxy to a host inside this service and report each step",
    access: "config:read",
    responses: {
      200: strictObject({
        ok: Type.Boolean(),
        steps: Type.Array(strictObject({ name: Type.String(), ok: Type.Boolean(), detail: Type.String() })),
      }),
    },
  },
});
